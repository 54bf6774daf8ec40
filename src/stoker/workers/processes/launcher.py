"""Who starts worker processes and notices their end: what the backend wants, and how one does it for one's children."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Protocol

from stoker.workers.processes.autopsy import Exit
from stoker.workers.processes.service import Ends

_UNKNOWN = 255  # as an exit code


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
            self._children[os.pidfd_open(pid)] = worker, pid
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def watched(self) -> list[int]:
        return list(self._children)

    def deaths(self) -> dict[int, Exit]:
        dead = {}
        for pidfd, (worker, pid) in list(self._children.items()):
            ended = _ended(pid)
            if ended is not None:
                dead[worker] = ended
                del self._children[pidfd]
                os.close(pidfd)
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        for pidfd, (own, _) in self._children.items():
            if own == worker:
                signal.pidfd_send_signal(pidfd, number)

    def close(self) -> None:
        pass


def _ended(pid: int) -> Exit | None:
    """How a child has ended, or None if it has not."""
    try:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:  # somebody else in this process waits for all children, and knows
        return Exit(_UNKNOWN)
    return Exit(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024) if ended else None
