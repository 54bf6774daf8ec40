"""What a source holds, uncompressed, as a stream that says where it broke."""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

from stoker.errors import ChunkError
from stoker.sources.files.opening import open_raw, uncompressed
from stoker.splitting.source import Source

_BUFFER_BYTES = 1 << 20


class Content(io.RawIOBase):
    """Owns the open file. ``on_read`` gets how many bytes of the source, as it is stored, are read."""

    def __init__(self, source: Source, on_read: Callable[[int], None]) -> None:
        self._source, self._on_read = source, on_read
        self._raw = open_raw(source.path)
        self._stream = uncompressed(self._raw, source.path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return not self._source.compression and self._source.size is not None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._raw.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise self._broken(error) from error
        except OSError as error:
            if error.errno is not None:  # of the disk or the network: the file itself may be sound
                raise
            raise self._broken(error) from error
        buffer[: len(data)] = data
        self._on_read(self._raw.tell())
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._raw.close()
        super().close()

    def _broken(self, error: Exception) -> ChunkError:
        where = f"{self._source.shown} is damaged or cut short, at or before byte {self._raw.tell():,} of the file"
        return ChunkError(f"{where}: {error}. The chunks before it are finished; get the file anew")


class BufferedContent:
    """A content with a buffer, read from its beginning or from a later offset."""

    def __init__(self, source: Source, on_read: Callable[[int], None]) -> None:
        self.shown = source.shown
        self.offset = 0  # the byte that is read next
        self._content = io.BufferedReader(Content(source, on_read), _BUFFER_BYTES)

    def line(self) -> bytes:
        """To the next newline, or to the end; empty at the end."""
        line = self._content.readline()
        self.offset += len(line)
        return line

    def read(self, nbytes: int) -> bytes:
        """As many bytes; fewer only at the end."""
        data = self._content.read(nbytes)
        self.offset += len(data)
        return data

    def exactly(self, nbytes: int) -> bytes:
        """
        Raises:
            ChunkError: The file ends before.
        """
        data = self.read(nbytes)
        if len(data) < nbytes:
            raise self.broken(f"it ends where {nbytes - len(data):,} more bytes should be")
        return data

    def go_to(self, offset: int) -> None:
        """Forwards, or back if it can seek."""
        if offset == self.offset:
            return
        if self._content.seekable():
            self.offset = self._content.seek(offset)
        while self.offset < offset and self.read(min(_BUFFER_BYTES, offset - self.offset)):
            pass

    def broken(self, why: str) -> ChunkError:
        """The error that says where, for whoever knows why."""
        return ChunkError(f"{self.shown}, at byte {self.offset:,} of its content: {why}")

    def close(self) -> None:
        self._content.close()
