"""Who starts worker processes and notices their end: what the backend wants, and how one does it for one's children."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from typing import Protocol

from stoker.memory import above_stdio
from stoker.workers.processes.exit_causes import UNKNOWN, Exit
from stoker.workers.processes.records import Said, Say
from stoker.workers.processes.service import Ends


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
        """Frees what the launcher holds. All workers have ended by then."""


class ChildrenLauncher:
    """Workers are the consumer's own children: forked as they are, or fresh interpreters."""

    def __init__(self, start: Callable[[int, Ends], int]) -> None:
        self._start = start
        self._children: dict[int, tuple[int, int]] = {}  # pidfd -> worker, pid

    def launch(self, worker: int, ends: Ends) -> None:
        pid = self._start(worker, ends)
        try:
            self._children[above_stdio(os.pidfd_open(pid))] = worker, pid
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
        for pidfd, (worker, pid) in list(self._children.items()):
            if has_ended(pidfd):
                dead[worker] = how_it_ended(pid)
                del self._children[pidfd]
                os.close(pidfd)
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        for pidfd, (own, _) in self._children.items():
            if own == worker:
                with contextlib.suppress(ProcessLookupError):  # it has just died
                    signal.pidfd_send_signal(pidfd, number)

    def close(self) -> None:
        pass


def has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def how_it_ended(pid: int) -> Exit:
    """Of a child that has. Whether one has is never asked in this way: another ``waitpid`` may have been before us."""
    import resource  # which wait4 imports too, and it may be a file of the user's

    try:
        if hasattr(resource, "struct_rusage"):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            peak = usage.ru_maxrss * 1024
        else:
            (ended, status), peak = os.waitpid(pid, os.WNOHANG), 0
    except ChildProcessError:
        return Exit(UNKNOWN)
    return Exit(os.waitstatus_to_exitcode(status), peak) if ended else Exit(UNKNOWN)
