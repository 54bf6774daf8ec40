"""Reading .zst to its end: all frames, one after the other, and an error if the last is cut short."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

_BYTES_AT_ONCE = 8 * 1024  # compressed; they may become ten thousand times as many


class ZstReader(io.RawIOBase):
    """The content of ``raw``, which stays the caller's. ``zstandard`` is the module of that name."""

    def __init__(self, raw: BinaryIO, zstandard: Any) -> None:
        self._raw, self._zstandard = raw, zstandard
        self._frame: Any = None
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and self._fill():
            pass
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _fill(self) -> bool:
        """Uncompresses a little more; False at the end of the file."""
        compressed = self._compressed or self._raw.read(_BYTES_AT_ONCE)
        self._compressed = b""
        if not compressed:
            if self._frame is not None:
                raise EOFError("compressed file ended before the end of its last frame")
            return False
        if self._frame is None:
            self._frame = self._zstandard.ZstdDecompressor().decompressobj()
        try:
            self._ready = memoryview(self._frame.decompress(compressed))
        except self._zstandard.ZstdError as error:
            raise OSError(str(error)) from error
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data, None
        return True
