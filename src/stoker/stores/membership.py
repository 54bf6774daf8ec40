"""Who shares a table: each worker has a number there, and a byte of the file that it holds while it works.

What a worker claims it marks with its number. Whoever needs that waits for the byte, which the system frees when its
holder ends, however it ends. What changes the table holds another byte, for moments only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from stoker.memory import reopened
from stoker.stores.locks import Locks

_MUTEX, _MEMBERS = 1, 16  # bytes: of whoever changes the table; and from there on one a member


class Membership:
    """One worker's part in a table. ``number`` is given to it when it has looked at the table."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.locks = Locks(fd)
        self.number = 0

    def changing(self) -> contextlib.AbstractContextManager[None]:
        """Nobody else changes the table meanwhile."""
        return self.locks.holding(_MUTEX)

    @contextlib.contextmanager
    def changing_from_another_thread(self) -> Iterator[None]:
        """The same, for who is not the worker itself: two who share an open file do not exclude each other."""
        own = reopened(self._fd, os.O_RDWR)
        try:
            with Locks(own).holding(_MUTEX):
                yield
        finally:
            os.close(own)

    def begin(self) -> None:
        """Others wait for this worker from now on."""
        self.locks.take(_MEMBERS + self.number)

    def end(self) -> None:
        self.locks.release(_MEMBERS + self.number)

    def wait_for(self, other: int) -> None:
        """Until that one has ended its work, or is dead."""
        self.locks.take(_MEMBERS + other, shared=True)
        self.locks.release(_MEMBERS + other)

    def is_gone(self, other: int) -> bool:
        """Whether that one does not work: it is dead, or has done what it claimed and is about to say so."""
        if not self.locks.try_take(_MEMBERS + other):
            return False
        self.locks.release(_MEMBERS + other)
        return True
