"""Compressed files, read as if they were not. One that is cut short or damaged is an error, never a shorter file.

The readers of the standard library and of zstandard pass over some damage in silence: a frame that is cut short, or
whatever stands behind the first one.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO

BLOCK_BYTES = 1 << 17  # of compressed data: some 128 MB of output at the worst ratio of gzip


class Uncompressed(io.RawIOBase):
    """Streams of one compression, one behind the other. Closing it closes ``raw``."""

    def __init__(self, raw: BinaryIO, decompressor: Callable[[], Any]) -> None:
        self._raw = raw
        self._new = decompressor
        self._begin()

    def _begin(self) -> None:
        self._stream: Any = None
        self._unread = b""  # compressed, behind the end of a stream
        self._ready = memoryview(b"")
        self._consumed = self._position = 0
        self._fresh = False  # whether a stream has just ended, so that the file may end too
        self._ended = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Forward by reading on, backward by reading again; the end is not known."""
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of a compressed file is not known")
        target = offset + (self._position if whence == io.SEEK_CUR else 0)
        if target < self._position:
            self._raw.seek(0)
            self._begin()
        while self._position < target and self._fill():
            self._take(target - self._position)
        return self._position

    def readinto(self, buffer: Any) -> int:
        if not self._fill():
            return 0
        out = memoryview(buffer).cast("B")
        piece = self._take(len(out))
        out[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    def _take(self, count: int) -> memoryview:
        piece, self._ready = self._ready[:count], self._ready[count:]
        self._position += len(piece)
        return piece

    def _fill(self) -> bool:
        """Whether there are bytes ready; makes some if there are none."""
        while not self._ready and not self._ended:
            block = self._unread or self._raw.read(BLOCK_BYTES)
            self._consumed += 0 if self._unread else len(block)
            self._unread = b""
            if not block:
                self._check_end()
            elif not self._fresh or (block := block.lstrip(b"\0")):  # padding between streams, as xz has it
                self._feed(block)
        return bool(self._ready)

    def _feed(self, block: bytes) -> None:
        self._fresh = False
        self._stream = self._stream or self._new()
        try:
            self._ready = memoryview(self._stream.decompress(block))
        except Exception as error:
            where = f"between bytes {self._consumed - len(block):,} and {self._consumed:,}"
            raise OSError(f"the compressed data is damaged {where}: {error}") from error
        if self._stream.eof:
            self._unread = self._stream.unused_data
            self._stream = None
            self._fresh = True

    def _check_end(self) -> None:
        if not self._fresh:
            raise EOFError(f"the compressed data ends at byte {self._consumed:,}, before its end: it was cut short")
        self._ended = True
