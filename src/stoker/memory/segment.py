"""A sealed segment: bytes and arrays written once, then mapped by any number of processes without a copy."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator, Sequence

from stoker.memory.adoption import address_of, adopt
from stoker.memory.anonymous import allocate, anonymous_file
from stoker.memory.mapping import PAGE, Mapping, Sharing, page_aligned

_COUNT = struct.Struct("<q")
_PLACE = struct.Struct("<qq")  # offset and length of a buffer
_ALIGN = 64
_CHUNK = 2**30  # a single write takes 2 GiB at most


class Segment:
    """Some buffers in an anonymous file that nobody can change any more."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def write(cls, buffers: Sequence[memoryview]) -> Segment:
        """Copies the buffers; big ones then share the copy's pages, so that they exist once."""
        addresses = [address_of(buffer) for buffer in buffers]
        offsets = list(_offsets([buffer.nbytes for buffer in buffers], addresses))
        end = max((offset + buffer.nbytes for offset, buffer in zip(offsets, buffers, strict=True)), default=0)
        places = [(offset, buffer.nbytes) for offset, buffer in zip(offsets, buffers, strict=True)]
        fd = anonymous_file()
        try:
            allocate(fd, 0, page_aligned(end + 1))
            os.pwrite(fd, _COUNT.pack(len(places)) + b"".join(_PLACE.pack(*place) for place in places), 0)
            for buffer, offset in zip(buffers, offsets, strict=True):
                _write_all(fd, buffer.cast("B"), offset)
            _seal(fd)
        except BaseException:
            os.close(fd)
            raise
        for (offset, nbytes), address in zip(places, addresses, strict=True):
            if address:
                adopt(fd, offset, address, nbytes)
        return cls(fd)

    def read(self) -> list[memoryview]:
        """The buffers, mapped copy-on-write: a dataset may write into its arrays, and then has that page for itself."""
        (count,) = _COUNT.unpack(os.pread(self.fd, _COUNT.size, 0))
        places = _PLACE.iter_unpack(os.pread(self.fd, count * _PLACE.size, _COUNT.size))
        mapping = Mapping(self.fd, os.fstat(self.fd).st_size, sharing=Sharing.PRIVATE)
        return [mapping.buffer[offset : offset + nbytes] for offset, nbytes in places]

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _offsets(lengths: Sequence[int], addresses: Sequence[int]) -> Iterator[int]:
    """Where each buffer begins: aligned, and one that may be adopted at the same place within a page as it has here."""
    end = _COUNT.size + len(lengths) * _PLACE.size
    for length, address in zip(lengths, addresses, strict=True):
        offset = page_aligned(end) + address % PAGE if address else -(-end // _ALIGN) * _ALIGN
        yield offset
        end = offset + length


def _write_all(fd: int, piece: memoryview, offset: int) -> None:
    while piece:
        done = os.pwrite(fd, piece[:_CHUNK], offset)
        piece, offset = piece[done:], offset + done


def _seal(fd: int) -> None:
    seals = [getattr(fcntl, f"F_SEAL_{name}", 0) for name in ("WRITE", "SHRINK", "GROW", "SEAL")]
    with contextlib.suppress(AttributeError, OSError):  # an unlinked file can't be, but nobody else has it open
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals[0] | seals[1] | seals[2] | seals[3])
