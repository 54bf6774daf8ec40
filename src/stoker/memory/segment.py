"""A sealed segment: bytes and arrays written once, then mapped by any number of processes without a copy."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Sequence

from stoker.memory.anonymous import allocate, anonymous_file
from stoker.memory.mapping import Mapping, Sharing, page_aligned

_COUNT = struct.Struct("<q")
_ALIGN = 64
_CHUNK = 2**30  # a single write takes 2 GiB at most


class Segment:
    """Some buffers in an anonymous file that nobody can change any more."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def write(cls, buffers: Sequence[memoryview]) -> Segment:
        lengths = [buffer.nbytes for buffer in buffers]
        head = _COUNT.pack(len(lengths)) + struct.pack(f"<{len(lengths)}q", *lengths)
        offsets = _offsets(len(head), lengths)
        fd = anonymous_file()
        allocate(fd, 0, page_aligned(offsets[-1]))
        os.pwrite(fd, head, 0)
        for buffer, offset in zip(buffers, offsets, strict=False):
            for start in range(0, buffer.nbytes, _CHUNK):
                _write_all(fd, buffer.cast("B")[start : start + _CHUNK], offset + start)
        _seal(fd)
        return cls(fd)

    def read(self) -> list[memoryview]:
        """The buffers, mapped copy-on-write: a dataset may write into its arrays, and then has that page for itself."""
        (count,) = _COUNT.unpack(os.pread(self.fd, _COUNT.size, 0))
        lengths = struct.unpack(f"<{count}q", os.pread(self.fd, 8 * count, _COUNT.size))
        offsets = _offsets(_COUNT.size + 8 * count, lengths)
        mapping = Mapping(self.fd, page_aligned(offsets[-1]), sharing=Sharing.PRIVATE)
        return [mapping.buffer[start : start + size] for start, size in zip(offsets, lengths, strict=False)]

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _offsets(start: int, lengths: Sequence[int]) -> list[int]:
    """Where each buffer begins, and last where the file ends."""
    offsets = [-(-start // _ALIGN) * _ALIGN]
    for length in lengths:
        offsets.append(-(-(offsets[-1] + length) // _ALIGN) * _ALIGN)
    return offsets


def _write_all(fd: int, piece: memoryview, offset: int) -> None:
    while piece:
        done = os.pwrite(fd, piece, offset)
        piece, offset = piece[done:], offset + done


def _seal(fd: int) -> None:
    seals = [getattr(fcntl, f"F_SEAL_{name}", 0) for name in ("WRITE", "SHRINK", "GROW", "SEAL")]
    with contextlib.suppress(AttributeError, OSError):  # an unlinked file can't be, but nobody else has it open
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals[0] | seals[1] | seals[2] | seals[3])
