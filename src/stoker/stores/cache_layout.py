"""How the file of a generation is laid out: its header, its table, and what they are checked by."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import xxhash

from stoker.errors import CacheError
from stoker.memory import MappedFile
from stoker.memory.array_layout import aligned

MAGIC = b"stoker 1"
HEADER_BYTES = 4096
_MOST_UNDER_WAY = 2**40  # bytes that are being written at any time

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("count", "<u8"),
        ("start", "<u8"),
        ("check", "<u8"),  # of those above, which never change
        ("tail", "<u8"),
        ("owners", "<u4"),
        ("first", "<u4"),  # of the owners since nobody had it open
        ("changes", "<u4"),  # by workers
        ("discarded", "<u4"),
    ]
)
ENTRY = np.dtype(
    [
        ("state", "<u4"),
        ("owner", "<u4"),
        ("offset", "<u8"),
        ("nbytes", "<u8"),
        ("form", "<u8"),
        ("aside", "<u8"),
        ("check", "<u8"),
    ]
)
_CHECKED = struct.Struct("<6Q")


def prepare(fd: int, path: str, count: int, limit: float, tell: Callable[[str], None]) -> tuple[Any, Any]:
    """Header and table of the file, made if they are not there, and mended if they are damaged.

    Each entry of the table has a checksum of its own, so none is given up for a header that is wrong.
    """
    start = aligned(HEADER_BYTES + count * ENTRY.itemsize)
    size, found = os.fstat(fd).st_size, read_header(fd)
    if found is not None and found["count"] != count:
        raise CacheError(
            f"{path} is a cache of {found['count']} samples and this dataset has {count}: pass Cache another folder, "
            f"or remove this one with `stoker cache rm {os.path.dirname(path)}`"
        )
    if size < start:
        if start > limit:
            raise OSError(errno.ENOSPC, f"its table alone takes {start:,} bytes, more than max_bytes allows")
        os.posix_fallocate(fd, 0, start)
    header, entries = tables(fd, start, count)
    if found is None:
        if any(header.tobytes()):  # else whoever made it was killed before he wrote it
            tell("its header is damaged and is written again")
        mended = header.copy()
        mended["magic"], mended["count"], mended["start"] = MAGIC, count, start
        mended["check"] = _check_of_header(mended)
        header[...] = mended  # in one go, since Ctrl-C may come between two
    return header, entries


def read_header(fd: int) -> Any | None:
    """The header, or None if it is not whole."""
    told = os.pread(fd, HEADER.itemsize, 0)
    if len(told) < HEADER.itemsize:
        return None
    header = np.frombuffer(told, HEADER)[0]
    return header if header["magic"] == MAGIC and header["check"] == _check_of_header(header) else None


def _check_of_header(header: Any) -> int:
    return xxhash.xxh3_64_intdigest(header["magic"].tobytes() + header["count"].tobytes() + header["start"].tobytes())


def tail_of(fd: int, told: int) -> int:
    """Where the file ends, and what is being written ends. What the header tells of that may be damaged."""
    size = aligned(os.fstat(fd).st_size)
    return told if size <= told < size + _MOST_UNDER_WAY else size


def tables(fd: int, start: int, count: int) -> tuple[Any, Any]:
    """Header and table, as all who map the file see them."""
    mapping = MappedFile(fd, start, 0, populate=False)
    header = np.ndarray((), HEADER, mapping.buffer)
    return header, np.ndarray(count, ENTRY, mapping.buffer, HEADER_BYTES)


def check_of(digest: int, key: int, location: tuple[int, ...]) -> int:
    """The checksum of a sample, its key and where it lies."""
    return xxhash.xxh3_64_intdigest(_CHECKED.pack(key, *location, digest))
