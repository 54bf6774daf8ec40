"""Ranges: bytes from one to another of a file that is not compressed, here or far away."""

from __future__ import annotations

import io
from typing import Any

from stoker.sources.files.opening import file_system, is_url, missing, open_raw

_MORE_BYTES = 1 << 16  # that are fetched to find the end of a line; then twice as many, and so on


def read_range(path: str, begin: int, end: int) -> bytes:
    """The bytes [begin, end); fewer if the file ends before."""
    if begin >= end:
        return b""
    if not is_url(path) or "::" in path:  # through a cache, which cat_file may pass by
        with open_raw(path) as file:
            file.seek(begin)
            return file.read(end - begin)
    system, name = file_system(path)
    try:
        data = bytes(system.cat_file(name, start=begin, end=end))
    except FileNotFoundError:
        raise missing(path) from None
    return data if len(data) <= end - begin else data[begin:end]  # some servers give whole files only


def is_on_web(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def gives_ranges(path: str) -> bool:
    """Whether pieces of a file can be had; some web servers give whole files only."""
    if not is_on_web(path):
        return True
    try:
        with open_raw(path) as file:
            file.seek(1)
            return len(file.read(1)) == 1
    except (ValueError, OSError):
        return False


def read_lines(path: str, begin: int, end: int, size: int) -> tuple[bytes, int]:
    """The lines that begin in [begin, end), each with all of its bytes, and where the first of them begins.

    ``size``: bytes of the file.

    Raises:
        EOFError: The file is shorter than it was.
    """
    first = max(begin - 1, 0)  # a line begins behind a newline
    data = read_range(path, first, end)
    if len(data) < end - first:
        raise EOFError(f"it has {first + len(data):,} bytes, and had {size:,} when it was listed")
    start = data.find(b"\n") + 1 if begin else 0
    if start == len(data) or (begin and not start):
        return b"", end
    if data.endswith(b"\n"):
        return data[start:], first + start
    return data[start:] + _rest_of_line(path, end, size), first + start


def _rest_of_line(path: str, begin: int, size: int) -> bytes:
    if not is_url(path):
        with open(path, "rb") as file:
            file.seek(begin)
            return file.readline()
    pieces: list[bytes] = []
    more = _MORE_BYTES
    while begin < size and not (pieces and b"\n" in pieces[-1]):
        pieces.append(read_range(path, begin, min(begin + more, size)))
        begin, more = begin + more, more * 2
    line, newline, _ = b"".join(pieces).partition(b"\n")
    return line + newline


class RangedFile(io.RawIOBase):
    """A file far away, of which only what is read is fetched, and nothing is kept.

    What fsspec opens keeps the bytes around the last read: of a table, each column would push out those of the other.
    """

    def __init__(self, path: str, size: int) -> None:
        self._path, self._size, self._at = path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        out = memoryview(buffer).cast("B")
        data = read_range(self._path, self._at, min(self._at + len(out), self._size))
        out[: len(data)] = data
        self._at += len(data)
        return len(data)
