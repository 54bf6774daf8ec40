"""Who starts worker processes and notices their end: what the backend wants, and how one does it for one's children."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Protocol

from stoker.workers.processes.service import Ends

_UNKNOWN = 255  # as an exit code


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


class ChildrenLauncher:
    """Workers are the consumer's own children: forked as they are, or fresh interpreters."""

    def __init__(self, start: Callable[[int, Ends], int], free: Callable[[], None]) -> None:
        self._start = start
        self._free = free
        self._children: dict[int, tuple[int, int]] = {}  # pidfd -> worker, pid

    def launch(self, worker: int, ends: Ends) -> None:
        pid = self._start(worker, ends)
        self._children[os.pidfd_open(pid)] = worker, pid

    def watched(self) -> list[int]:
        return list(self._children)

    def deaths(self) -> dict[int, int]:
        dead = {}
        for pidfd, (worker, pid) in list(self._children.items()):
            code = _exit_code(pid)
            if code is not None:
                dead[worker] = code
                del self._children[pidfd]
                os.close(pidfd)
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        for pidfd, (own, _) in self._children.items():
            if own == worker:
                signal.pidfd_send_signal(pidfd, number)

    def close(self) -> None:
        self._free()


def _exit_code(pid: int) -> int | None:
    """How a child has ended, or None if it has not."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # somebody else in this process waits for all children, and knows
        return _UNKNOWN
    return os.waitstatus_to_exitcode(status) if ended else None
