"""Who starts worker processes and notices their end: what the backend wants, and how one does it for one's children."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Protocol

from stoker.systems import IS_LINUX
from stoker.workers.processes.exit_causes import UNKNOWN, Exit
from stoker.workers.processes.lifelines import HAS_PIDFD, close_end, new_lifeline, watched
from stoker.workers.processes.records import Said, Say
from stoker.workers.processes.service import Ends

_ENDING_S, _LOOK_S = 1.0, 0.001  # for a process to end that has closed all of its files


class Launcher(Protocol):
    """Starts workers and ends them. Made by one backend, used in its thread."""

    def launch(self, worker: int, ends: Ends) -> None:
        """Starts a worker with its own copies of these descriptors."""

    def watched(self) -> list[int]:
        """Descriptors that become readable when ``deaths`` may have news."""

    def deaths(self) -> dict[int, Exit]:
        """Workers that have ended since the last call, and how."""

    def kill(self, worker: int, number: signal.Signals) -> None:
        """Sends a signal, if the worker is still there."""

    def close(self) -> None:
        """Frees what the launcher holds. All workers have ended by then, or were killed at least."""


class ChildrenLauncher:
    """Workers are the consumer's own children: forked as they are, or fresh interpreters."""

    def __init__(self, start: Callable[[int, Ends, int], int]) -> None:
        self._start = start  # with the worker's end of the lifeline, where there is one
        self._children: dict[int, tuple[int, int]] = {}  # what is readable when it ends -> worker, pid

    def launch(self, worker: int, ends: Ends) -> None:
        ours, theirs = new_lifeline()
        try:
            pid = self._start(worker, ends, theirs)
        except BaseException:
            close_end(ours)
            raise
        finally:
            close_end(theirs)
        try:
            self._children[watched(pid, ours)] = worker, pid
        except ProcessLookupError:  # it has died, and SIGCHLD is ignored: nobody need wait for it
            os.write(ends.answers, Said(Say.DIED, worker, value=UNKNOWN).pack())
        except OSError:
            os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            raise

    def watched(self) -> list[int]:
        return list(self._children)

    def deaths(self) -> dict[int, Exit]:
        dead = {}
        for end, (worker, pid) in list(self._children.items()):
            if has_ended(end):
                dead[worker] = how_it_ended(pid) if HAS_PIDFD else _how_it_ends(pid)
                del self._children[end]
                close_end(end)
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        for end, (own, pid) in self._children.items():
            if own == worker:
                with contextlib.suppress(ProcessLookupError):  # it has just died
                    if HAS_PIDFD:
                        signal.pidfd_send_signal(end, number)
                    else:
                        os.kill(pid, number)

    def close(self) -> None:
        while self._children:
            close_end(self._children.popitem()[0])


def has_ended(end: int) -> bool:
    """Of a descriptor that is readable then."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(0))


def how_it_ended(pid: int) -> Exit:
    """Of a child that has. Whether one has is never asked in this way: another ``waitpid`` may have been before us."""
    return _waited(pid) or Exit(UNKNOWN)


def _how_it_ends(pid: int) -> Exit:
    """Of a child whose end of the lifeline is closed: it is about to end. One that has closed it itself is killed."""
    deadline = time.monotonic() + _ENDING_S
    while (ended := _waited(pid)) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    if ended is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return ended or Exit(-signal.SIGKILL)


def _waited(pid: int) -> Exit | None:
    """None: it has not ended yet."""
    import resource  # which wait4 imports too, and it may be a file of the user's

    try:
        if hasattr(resource, "struct_rusage"):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            peak = usage.ru_maxrss * (1024 if IS_LINUX else 1)  # bytes on macOS
        else:
            (ended, status), peak = os.waitpid(pid, os.WNOHANG), 0
    except ChildProcessError:
        return Exit(UNKNOWN)
    return Exit(os.waitstatus_to_exitcode(status), peak) if ended else None
