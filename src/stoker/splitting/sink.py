"""Writing a chunk: under a hidden name, compressed as its source is; it gets its real name when it is on the disk."""

from __future__ import annotations

import bz2
import contextlib
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from stoker.sources.files.opening import needed
from stoker.systems import IS_WINDOWS

_BUFFER_BYTES = 256 * 1024
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say: with gzip's header, which then holds no time


class Sink:
    """What is written to it is compressed into ``file``."""

    def __init__(self, file: BinaryIO, compression: str) -> None:
        self.file = file
        self._compressor = _COMPRESSORS[compression]() if compression else None
        self._waiting = bytearray()

    def write(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) >= _BUFFER_BYTES:
            self._pass_on()

    def finish(self) -> None:
        """To be called once, behind the last write."""
        self._pass_on()
        if self._compressor is not None:
            self.file.write(self._compressor.flush())

    def _pass_on(self) -> None:
        data = bytes(self._waiting)
        self._waiting.clear()
        self.file.write(data if self._compressor is None else self._compressor.compress(data))


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that has its name only when all of it is on the disk; if something fails it is not there.

    What has the hidden name (a chunk that was being written when its process was killed, or a link of somebody else's)
    is removed, never written to. ``mode``: who may read it, at most; the umask takes from that.
    """
    hidden = path.with_name(f".{path.name.lstrip('.')}.part")
    hidden.unlink(missing_ok=True)
    try:
        with open(hidden, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    if IS_WINDOWS:  # which opens no folders
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_COMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.compressobj(6, zlib.DEFLATED, _GZIP),
    ".bz2": bz2.BZ2Compressor,
    ".xz": lzma.LZMACompressor,
    ".zst": lambda: needed("zstandard", "writing .zst").ZstdCompressor().compressobj(),
}
