"""How worker processes come to be, and how their end is noticed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Protocol

from stoker.memory import Segment
from stoker.workers.processes.nursery import Nursery
from stoker.workers.processes.service import Ends, die_with, leave, serve, settle_in
from stoker.workers.processes.shipment import SINGLE_THREADED, Shipment, load_job
from stoker.workers.worker import Job


class Launcher(Protocol):
    """Starts workers and ends them. Made by one backend, used in its thread."""

    def launch(self, worker: int, ends: Ends) -> None:
        """Starts a worker with its own copies of these descriptors."""

    def watched(self) -> list[int]:
        """Descriptors that become readable when ``deaths`` may have news."""

    def deaths(self) -> dict[int, int]:
        """Workers that have ended since the last call, with their exit codes (as ``subprocess`` gives them)."""

    def kill(self, worker: int, number: signal.Signals) -> None:
        """Sends a signal, if the worker is still there."""

    def close(self) -> None:
        """Frees what the launcher holds. All workers have ended by then."""


class NurseryLauncher:
    """Workers are forked by the nursery, which also tells of their deaths, in the answers' pipe."""

    def __init__(self, shipment: Shipment) -> None:
        self._modules = shipment.modules
        self._segment = shipment.write()
        self._nursery = Nursery.shared()
        self._keys: dict[int, int] = {}

    def launch(self, worker: int, ends: Ends) -> None:
        self._keys[worker] = self._nursery.launch(worker, ends, self._segment, self._modules)

    def watched(self) -> list[int]:
        return [self._nursery.fileno()]

    def deaths(self) -> dict[int, int]:
        """The nursery never speaks on its socket: that it is readable means that it has died, and its workers too."""
        dead = {worker: -signal.SIGKILL for worker in self._keys}
        self._keys.clear()
        self._nursery.release(broken=True)
        self._nursery = Nursery.shared()
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        if worker in self._keys:
            self._nursery.kill(self._keys[worker], number)

    def close(self) -> None:
        self._nursery.release()
        self._segment.close()


class ChildrenLauncher:
    """Workers are the consumer's own children: forked as they are, or fresh interpreters."""

    def __init__(self, start: Callable[[int, Ends], int], free: Callable[[], None]) -> None:
        self._start = start
        self._free = free
        self._children: dict[int, tuple[int, int]] = {}  # pidfd -> worker, pid

    @classmethod
    def forking(cls, job: Job) -> ChildrenLauncher:
        return cls(lambda worker, ends: _fork(worker, ends, job), lambda: None)

    @classmethod
    def spawning(cls, shipment: Shipment) -> ChildrenLauncher:
        segment = shipment.write()
        return cls(lambda worker, ends: _spawn(worker, ends, segment), segment.close)

    def launch(self, worker: int, ends: Ends) -> None:
        pid = self._start(worker, ends)
        self._children[os.pidfd_open(pid)] = worker, pid

    def watched(self) -> list[int]:
        return list(self._children)

    def deaths(self) -> dict[int, int]:
        dead = {}
        for pidfd, (worker, pid) in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                dead[worker] = os.waitstatus_to_exitcode(status)
                del self._children[pidfd]
                os.close(pidfd)
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        for pidfd, (own, _) in self._children.items():
            if own == worker:
                signal.pidfd_send_signal(pidfd, number)

    def close(self) -> None:
        self._free()


def _fork(worker: int, ends: Ends, job: Job) -> int:
    consumer = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: whoever asks for start="fork" takes that on
        pid = os.fork()
    if pid:
        return pid
    try:
        settle_in()
        die_with(consumer)
        serve(worker, ends, lambda: job)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    leave()
    raise AssertionError("a process that has left goes on")


_FRESH = (
    "import sys; sys.path[:] = {path!r}; from stoker.workers.processes.launchers import fresh_worker; "
    "fresh_worker({worker}, {ends!r}, {segment}, {consumer})"
)


def _spawn(worker: int, ends: Ends, segment: Segment) -> int:
    code = _FRESH.format(path=sys.path, worker=worker, ends=tuple(ends), segment=segment.fd, consumer=os.getpid())
    # Not waited for by subprocess: its pid is all we need, and the launcher reaps it.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[*ends, segment.fd],
        env=SINGLE_THREADED | dict(os.environ),
    )
    process.returncode = 0  # else its destructor would warn that it was not waited for
    return process.pid


def fresh_worker(worker: int, ends: tuple[int, int, int], segment: int, consumer: int) -> None:
    """The main function of a spawned worker."""
    settle_in()
    die_with(consumer)
    serve(worker, Ends(*ends), lambda: load_job(Segment(segment)))
    leave()
