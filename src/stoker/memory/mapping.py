"""Memory mappings that hold no descriptor.

Python's own ``mmap`` keeps a duplicate of the descriptor in every mapping (before 3.13), so a thousand held batches
would be a thousand open files. Here it maps memory without a file, and the file is then put in its place: what is
unmapped when the last array over it is gone, and by whom, is Python's own business, and no interrupt can prevent it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from enum import IntFlag

import numpy as np

from stoker.memory.limits import mappings_allowed
from stoker.systems import IS_LINUX

PAGE = mmap.PAGESIZE

_READ_WRITE = 0x1 | 0x2
_MAPS_FILES = hasattr(mmap, "MAP_ANONYMOUS")  # in place, as POSIX has it; Windows has not

if _MAPS_FILES:
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.mmap.restype = ctypes.c_void_p
    _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]


class Sharing(IntFlag):
    """Who sees what is written."""

    SHARED = 0x01
    PRIVATE = 0x02  # copy on write: shared until one writes, and then one's own


_mapped: set[weakref.ref[mmap.mmap]] = set()  # of this process, whichever loader they belong to
_POPULATE = 0x8000 if IS_LINUX else 0  # map the pages that are there now, instead of a page fault each later
_NORESERVE = 0x4000 if IS_LINUX else 0
_FIXED = 0x10
_ANONYMOUS = (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE,) if _MAPS_FILES else ()


class Memory:
    """Memory of this process alone. ``bytes`` is a writable uint8 array over it; arrays over that keep it mapped."""

    __slots__ = ("__weakref__", "buffer", "bytes", "size")

    def __init__(self, size: int) -> None:
        try:
            owner = mmap.mmap(-1, size, *_ANONYMOUS)
        except OSError as error:
            raise _cannot_map(size, error.errno or 0) from error
        self.bytes = np.frombuffer(owner, np.uint8)
        _mapped.add(weakref.ref(owner, _mapped.discard))  # which is no Python, and so is never interrupted
        self.buffer = self.bytes.data
        self.size = size


class MappedFile(Memory):
    """A piece of a file in memory.

    ``populate``: shared pages that are there are mapped now; a big file on disk would be read for it.
    """

    __slots__ = ()

    def __init__(
        self, fd: int, size: int, offset: int = 0, sharing: Sharing = Sharing.SHARED, *, populate: bool = True
    ) -> None:
        flags = sharing | (_NORESERVE if sharing is Sharing.PRIVATE else _POPULATE if populate else 0)
        super().__init__(size)
        address = self.bytes.ctypes.data
        if _libc.mmap(address, size, _READ_WRITE, flags | _FIXED, fd, offset) != address:
            raise _cannot_map(size, ctypes.get_errno())


def _cannot_map(size: int, errno: int) -> MemoryError:
    return MemoryError(
        f"cannot map {size / 2**20:.1f} MiB: {os.strerror(errno)} (errno {errno}). Use a smaller batch_size, "
        f"hold fewer batches, or raise the limit of address space (`ulimit -v`)"
    )


def mappings_left() -> int:
    """How many more there may be; fewer than none where there are too many already."""
    return mappings_allowed() - len(_mapped)


def map_fixed(address: int, size: int, fd: int, offset: int) -> None:
    """Puts a copy-on-write view of the file in the place of what is mapped at these pages now, in one step."""
    flags = Sharing.PRIVATE | _FIXED | _NORESERVE
    if _libc.mmap(address, size, _READ_WRITE, flags, fd, offset) != address:
        raise MemoryError(f"cannot map {size / 2**20:.1f} MiB in place: {os.strerror(ctypes.get_errno())}")


def page_aligned(nbytes: int) -> int:
    return -(-nbytes // PAGE) * PAGE
