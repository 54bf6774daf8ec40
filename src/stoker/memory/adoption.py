"""Adoption: a big array of this process comes to share the pages of its sealed copy, so that there is one and not two.

The workers' segment holds a copy of each array of the dataset, and the consumer usually keeps the dataset too. Once the
copy is sealed, the array's own pages are exchanged for the copy's, in place: same addresses, same contents,
copy-on-write, so that whatever the consumer does with its array it does to itself alone.

It is done only where it is known to be sound: a block that glibc's malloc got from the system for itself (it will
go back to the system as a whole) and that is still plain private memory. What another thread wrote into the array
in the very moment of the exchange would be lost; what workers would see of such a write is anybody's guess anyway.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np

from stoker.memory.mapping import PAGE, map_fixed

ADOPTED_FROM = 2**25  # bytes: glibc never takes bigger blocks from its heap (its mmap threshold ends there)

_MAPS = "/proc/self/maps"
_HEADER = 16  # bytes before a block: the size of the block below, and its own with three flags
_IS_MMAPPED = 0b010
_FLAGS = 0b111


def address_of(buffer: memoryview) -> int:
    """Where the buffer lies, if it is big enough to be adopted; else 0."""
    if buffer.nbytes < ADOPTED_FROM or not hasattr(os, "memfd_create"):
        return 0
    return int(np.frombuffer(buffer, np.uint8).ctypes.data)


def adopt(fd: int, offset: int, address: int, nbytes: int) -> bool:
    """Exchanges the pages within [address, address + nbytes) for those of the file at ``offset``, if that is sound.

    The file holds the very same bytes there, is sealed, and ``offset`` and ``address`` lie alike within their pages.
    """
    if not _is_block_of_its_own(address, nbytes):
        return False
    first = -(-address // PAGE) * PAGE
    last = (address + nbytes) // PAGE * PAGE
    if not _is_plain_memory(first, last):
        return False
    map_fixed(first, last - first, fd, offset + first - address)
    return True


def _is_block_of_its_own(address: int, nbytes: int) -> bool:
    """Whether glibc's malloc mapped this block singly: then its header says so and it begins a page."""
    begins_a_page = (address - _HEADER) % PAGE == 0
    if not begins_a_page or not _is_plain_memory(address - _HEADER, address):
        return False
    size = ctypes.c_size_t.from_address(address - _HEADER // 2).value
    mapped = size & ~_FLAGS
    if mapped % PAGE == PAGE - _HEADER:  # newer ones (2.43) leave the header out of it
        mapped += _HEADER
    return bool(size & _IS_MMAPPED) and mapped % PAGE == 0 and mapped >= nbytes + _HEADER


def _is_plain_memory(first: int, last: int) -> bool:
    """Whether these addresses are known to be private, writable memory that is no file's."""
    covered = first
    try:
        with open(_MAPS) as maps:
            for line in maps:
                span, permissions, _, _, inode, *name = line.split(maxsplit=5)
                begin, end = (int(part, 16) for part in span.split("-"))
                if end <= covered or begin >= last:
                    continue
                if begin > covered or permissions != "rw-p" or inode != "0" or name:
                    return False
                covered = end
    except OSError:  # no /proc: nobody can tell
        return False
    return covered >= last
