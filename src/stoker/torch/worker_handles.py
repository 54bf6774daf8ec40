"""Worker processes, as far as code that looks at the workers of torch's iterator needs them."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
import weakref

_HAS_PIDFD = hasattr(os, "pidfd_open")
_LOOK_S = 0.01


class WorkerHandle:
    """A worker process, under the names that ``multiprocessing.Process`` has. It ends with its iterator.

    Args:
        pid: Its id.
    """

    daemon = True

    def __init__(self, pid: int) -> None:
        self.pid = self.ident = pid
        self.name = f"DataLoader worker {pid}"
        self._code = 0
        self._fd: int | None = None
        with contextlib.suppress(ProcessLookupError, AttributeError):  # it has just ended; or macOS, which has no such
            self._fd = os.pidfd_open(pid)
            weakref.finalize(self, os.close, self._fd).atexit = False

    def is_alive(self) -> bool:
        return not self._has_ended(0)

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end, so many seconds at most."""
        self._has_ended(None if timeout is None else max(timeout, 0) * 1000)

    @property
    def exitcode(self) -> int | None:
        """None: it is alive. 0: it has ended, and Stoker was the first to hear how. Else as in ``multiprocessing``."""
        return self._code if self._has_ended(0) else None

    @property
    def sentinel(self) -> int:
        """What ``multiprocessing.connection.wait`` takes, to wait for its end.

        Raises:
            ValueError: It had gone before anybody looked, or this system has no such descriptor.
        """
        if self._fd is None:
            raise ValueError(f"there is no descriptor of process {self.pid}")
        return self._fd

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _has_ended(self, milliseconds: float | None) -> bool:
        if self._fd is None:
            return _has_gone(self.pid, milliseconds)
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if not poll.poll(milliseconds):
            return False
        if not self._code:
            self._code = self._found_code()
        return True

    def _found_code(self) -> int:
        """Without taking the news away from who waits for it."""
        assert self._fd is not None
        with contextlib.suppress(ChildProcessError):  # it was waited for, or is no child of this process
            found = os.waitid(os.P_PIDFD, self._fd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return 0

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._fd is not None:
                signal.pidfd_send_signal(self._fd, number)
            elif not _HAS_PIDFD:
                os.kill(self.pid, number)


def _has_gone(pid: int, milliseconds: float | None) -> bool:
    """Where there is no descriptor of it: since it had gone before, or since the system has none."""
    deadline = math.inf if milliseconds is None else time.monotonic() + milliseconds / 1000
    try:
        while not _HAS_PIDFD:
            os.kill(pid, 0)
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
    except ProcessLookupError:
        pass
    return True
