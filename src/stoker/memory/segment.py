"""A sealed segment: bytes and arrays written once, then mapped by any number of processes without a copy."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence

import numpy as np

from stoker.interrupts import let_in, put_off
from stoker.memory.adoption import address_of, adopt
from stoker.memory.anonymous import allocate, anonymous_file
from stoker.memory.closing import Closing
from stoker.memory.mapping import PAGE, MappedFile, Sharing, page_aligned

_COUNT = struct.Struct("<q")
_EXTENT = struct.Struct("<qq")  # offset and length of a buffer
_ALIGN = 64
_COMPARED = 2**20  # bytes at a time, so that the result of the comparison stays in the caches
_CHUNK = 2**30  # a single write takes 2 GiB at most


class Segment:
    """Some buffers in an anonymous file that nobody can change any more."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._closing: Closing | None = None  # where nobody but us has the descriptor

    @classmethod
    def write(cls, buffers: Sequence[memoryview]) -> Segment:
        """Copies the buffers; big ones then share the copy's pages, so that they exist once."""
        addresses = [address_of(buffer) for buffer in buffers]
        offsets = list(_offsets([buffer.nbytes for buffer in buffers], addresses))
        end = max((offset + buffer.nbytes for offset, buffer in zip(offsets, buffers, strict=True)), default=0)
        extents = [(offset, buffer.nbytes) for offset, buffer in zip(offsets, buffers, strict=True)]
        with put_off():  # until somebody has the descriptor; from then on an interrupt only frees it
            segment = cls(fd := anonymous_file())
            segment._closing = Closing.together(segment, fd)
        allocate(fd, 0, page_aligned(end + 1))
        os.pwrite(fd, _COUNT.pack(len(extents)) + b"".join(_EXTENT.pack(*extent) for extent in extents), 0)
        for buffer, offset in zip(buffers, offsets, strict=True):
            _write_all(fd, buffer.cast("B"), offset)
        _seal(fd)
        for (offset, nbytes), address in zip(extents, addresses, strict=True):
            if address:
                adopt(fd, offset, address, nbytes)
        return segment

    def read(self) -> list[memoryview]:
        """The buffers, mapped copy-on-write: a dataset may write into its arrays, and then has that page for itself."""
        (count,) = _COUNT.unpack(os.pread(self.fd, _COUNT.size, 0))
        extents = _EXTENT.iter_unpack(os.pread(self.fd, count * _EXTENT.size, _COUNT.size))
        mapping = MappedFile(self.fd, os.fstat(self.fd).st_size, sharing=Sharing.PRIVATE)
        return [mapping.buffer[offset : offset + nbytes] for offset, nbytes in extents]

    def holds(self, buffers: Sequence[memoryview]) -> bool:
        """Whether its buffers are these, byte by byte."""
        own = self.read()
        return len(own) == len(buffers) and all(map(_is_equal, own, buffers))

    def close(self) -> None:
        with put_off():
            fd, self.fd = self.fd, -1
            closing, self._closing = self._closing, None
            if closing is not None:
                closing.let_go()
            if fd >= 0:
                os.close(fd)


def _offsets(lengths: Sequence[int], addresses: Sequence[int]) -> Iterator[int]:
    """Where each buffer begins: aligned, and one that may be adopted at the same place within a page as it has here."""
    end = _COUNT.size + len(lengths) * _EXTENT.size
    for length, address in zip(lengths, addresses, strict=True):
        offset = page_aligned(end) + address % PAGE if address else -(-end // _ALIGN) * _ALIGN
        yield offset
        end = offset + length


def _is_equal(one: memoryview, other: memoryview) -> bool:
    if one.nbytes != other.nbytes:
        return False
    first, second = np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
    return all(
        np.array_equal(first[start : start + _COMPARED], second[start : start + _COMPARED])
        for start in range(0, one.nbytes, _COMPARED)
    )


def _write_all(fd: int, piece: memoryview, offset: int) -> None:
    while piece:
        with let_in():  # it may take long
            done = os.pwrite(fd, piece[:_CHUNK], offset)
        piece, offset = piece[done:], offset + done


def _seal(fd: int) -> None:
    import fcntl  # which Windows has not, where there are no segments

    seals = [getattr(fcntl, f"F_SEAL_{name}", 0) for name in ("WRITE", "SHRINK", "GROW", "SEAL")]
    with contextlib.suppress(AttributeError, OSError):  # an unlinked file can't be, but nobody else has it open
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals[0] | seals[1] | seals[2] | seals[3])
