"""Locks on single bytes of a file, held by an open file description and let go by the system at the end of that.

So whoever dies holds nothing, threads exclude each other as processes do (each opens the file for itself), and a wait
is a wait for an event. The bytes need not exist: they are numbers that all who open the file agree on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct

with contextlib.suppress(ImportError):  # Windows, where nothing is locked
    import fcntl

_FLOCK = struct.Struct("hhxxxxqqixxxx")  # struct flock of Linux on 64 bits: type, whence, start, length, pid


class Locks:
    """The locks of one open file description, which must be the caller's own."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def take(self, byte: int, *, shared: bool = False) -> None:
        """Waits until nobody else holds it (``shared``: until nobody holds it alone)."""
        self._set(fcntl.F_OFD_SETLKW, fcntl.F_RDLCK if shared else fcntl.F_WRLCK, byte)

    def try_take(self, byte: int) -> bool:
        """Takes it alone, if that can be done at once."""
        try:
            self._set(fcntl.F_OFD_SETLK, fcntl.F_WRLCK, byte)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def is_held(self, byte: int) -> bool:
        """Whether somebody else holds it, alone or shared."""
        flock = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        kind, *_ = _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, flock))
        return bool(kind != fcntl.F_UNLCK)

    def release(self, byte: int) -> None:
        self._set(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, byte)

    def release_all(self) -> None:
        """Before the file is closed: for what is mapped of it, and in forked children, it stays open."""
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))

    def holding(self, byte: int) -> Holding:
        """Within, nobody else holds it."""
        return Holding(self, byte)

    def _set(self, how: int, kind: int, byte: int) -> None:
        fcntl.fcntl(self._fd, how, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))


class Holding:
    """A lock that is held for a while. No generator: one that Ctrl-C has left behind would end it at any later time,
    when the descriptor may be another file's."""

    __slots__ = ("_byte", "_locks")

    def __init__(self, locks: Locks, byte: int) -> None:
        self._locks, self._byte = locks, byte

    def __enter__(self) -> None:
        self._locks.take(self._byte)

    def __exit__(self, *_: object) -> None:
        self._locks.release(self._byte)
