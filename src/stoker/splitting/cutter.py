"""What a form of file has to offer to be cut, and the cutter of all that comes record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from stoker.splitting.content import BufferedContent
from stoker.splitting.limit import Limit
from stoker.splitting.sink import Sink


class Written(NamedTuple):
    """What a chunk holds: its records, and the bytes of its content."""

    records: int
    nbytes: int


class Cutter(Protocol):
    """Reads a source from an offset on, and writes one chunk after the other.

    Attributes:
        offset: Where in the source the next chunk begins, in a unit of its own; another cutter can begin there.
    """

    offset: int

    def more(self) -> bool:
        """Whether records are left."""

    def write(self, sink: Sink) -> Written:
        """The next chunk, empty if no records are left."""

    def close(self) -> None:
        """Closes the source."""


class SourceRecord(NamedTuple):
    """Bytes that belong together. ``records`` is 0 where they hold none: an empty line, a folder."""

    data: bytes
    records: int = 1


class RecordCutter:
    """Cuts between records of a stream; each chunk has the same ``head`` and ``tail``. An offset is in bytes."""

    def __init__(
        self,
        stream: BufferedContent,
        records: Iterator[SourceRecord],
        limit: Limit,
        *,
        head: bytes = b"",
        tail: bytes = b"",
    ) -> None:
        self.offset = stream.offset
        self._stream, self._records, self._limit = stream, records, limit
        self._head, self._tail = head, tail
        self._next: SourceRecord | None = None

    def more(self) -> bool:
        if self._next is None:
            self._next = next(self._records, None)
        return self._next is not None

    def write(self, sink: Sink) -> Written:
        nbytes, records, is_empty = len(self._head) + len(self._tail), 0, True
        sink.write(self._head)
        while self.more():
            assert self._next is not None
            data, more = self._next
            if not is_empty and not self._limit.admits(nbytes + len(data), records + more):
                break
            sink.write(data)
            nbytes, records, is_empty = nbytes + len(data), records + more, False
            self.offset += len(data)
            self._next = None
        sink.write(self._tail)
        return Written(records, nbytes)

    def close(self) -> None:
        self._stream.close()
