"""Arrow by rows: files and streams of which only the headers of record batches are read to find out where rows are.

An Arrow file is ``ARROW1``, two zeros, a stream of messages, and a footer that tells where the record batches are. A
message is a marker, the length of its header, the header, and a body of buffers. Headers and footers are FlatBuffers,
of which the few numbers that are needed here are read as the format's specification lays them out:
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stoker.sources.files.listing import Int64s
from stoker.sources.files.opening import is_url, needed
from stoker.sources.files.parts import CannotCut, Cut, Limits, Part, cut_rows, joined_cuts
from stoker.sources.files.ranges import RangedFile
from stoker.sources.files.read_context import ReadContext

MAGIC = b"ARROW1"  # begins an Arrow file; a stream has no such mark
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"

_CONTINUES = b"\xff\xff\xff\xff"  # begins a message
_DICTIONARY, _RECORD_BATCH = 2, 3  # what a message holds
_EXPANDED = 3  # times as large as its body is a compressed record batch taken to be

Read = Callable[[int, int], bytes]  # the bytes [begin, end)


class _Table(NamedTuple):
    """A table of a FlatBuffer."""

    data: bytes
    at: int

    def number(self, field: int, form: str) -> int:
        """A number that is 0 where it is left out."""
        at = self._field(field)
        return int(struct.unpack_from("<" + form, self.data, at)[0]) if at else 0

    def offset_of(self, field: int) -> int:
        """Where a table or a vector begins; 0: it is left out."""
        at = self._field(field)
        return at + int(struct.unpack_from("<I", self.data, at)[0]) if at else 0

    def _field(self, field: int) -> int:
        names = self.at - int(struct.unpack_from("<i", self.data, self.at)[0])
        slot = 4 + 2 * field
        if slot >= struct.unpack_from("<H", self.data, names)[0]:
            return 0
        offset = struct.unpack_from("<H", self.data, names + slot)[0]
        return self.at + int(offset) if offset else 0


class _Message(NamedTuple):
    """The header of a message: where it begins and ends, what it holds, how many rows, and how large the rows are."""

    begin: int
    end: int
    kind: int
    rows: int
    nbytes: int


def _root(data: bytes) -> _Table:
    return _Table(data, int(struct.unpack_from("<I", data)[0]))


def _message(read: Read, begin: int) -> _Message | None:
    """None: the messages end there."""
    prefix = read(begin, begin + 8)
    if prefix == END_OF_STREAM or not prefix:
        return None
    length = int(struct.unpack("<i", prefix[4:] if prefix.startswith(_CONTINUES) else prefix[:4])[0])
    if length <= 0:
        raise ValueError(f"there is no message at byte {begin:,}")
    body = begin + length + (8 if prefix.startswith(_CONTINUES) else 4)
    header = _root(read(body - length, body))
    held = _Table(header.data, header.offset_of(2))
    kind, nbytes = header.number(1, "B"), header.number(3, "q")
    rows = held.number(0, "q") if kind == _RECORD_BATCH else 0
    is_compressed = kind == _RECORD_BATCH and held.offset_of(3) > 0
    return _Message(begin, body + nbytes, kind, rows, nbytes * _EXPANDED if is_compressed else nbytes)


def _of_file(read: Read, size: int) -> list[_Message]:
    """The record batches, as the footer tells them."""
    length = int(struct.unpack("<i", read(size - 10, size - 6))[0])
    footer = _root(read(size - 10 - length, size - 10))
    at = footer.offset_of(3)
    count = struct.unpack_from("<I", footer.data, at)[0] if at else 0
    begins = [int(struct.unpack_from("<q", footer.data, at + 4 + 24 * block)[0]) for block in range(count)]
    found = [_message(read, begin) for begin in begins]
    return [one for one in found if one is not None]


def _of_stream(read: Read, size: int) -> list[_Message]:
    """The record batches, found message by message."""
    found, at = [], 0
    while (message := _message(read, at)) is not None:
        if message.kind == _DICTIONARY:
            raise CannotCut("it is a stream with dictionaries, which may change from one record batch to the next")
        at = message.end
        found.append(message)
    if read(at, at + 8) != END_OF_STREAM:
        raise EOFError("the stream ends without the mark that ends one: it was cut short")
    if at + 8 != size:
        raise ValueError(f"there is more behind the end of the stream, from byte {at + 8:,}")
    return [one for one in found if one.kind == _RECORD_BATCH]


class ArrowRows:
    """An Arrow file or stream, and where its record batches are.

    It is mapped anew for each part, and only as long as that is in use: pages that were read count as memory of the
    process as long as they are mapped.
    """

    held = 0

    def __init__(self, part: Part) -> None:
        self._part = part
        self._arrow, self._ipc = needed("pyarrow", "reading Arrow"), needed("pyarrow.ipc", "reading Arrow")
        with self._source() as source:
            read, size = partial(_read, source), source.size()
            self._is_file = read(0, len(MAGIC)) == MAGIC
            self.batches = _of_file(read, size) if self._is_file else _of_stream(read, size)
            source.seek(0)
            self._schema = None if self._is_file else self._ipc.open_stream(source).schema
        self._firsts: Int64s = np.cumsum([0, *(batch.rows for batch in self.batches)], dtype=np.int64)

    def skipped(self, row: int) -> float:
        return 0

    def skipped_afresh(self, row: int) -> float:
        return 0

    def again(self) -> ArrowRows:
        return ArrowRows(self._part)

    def close(self) -> None:
        """There is nothing to close."""

    def read(self, begin: int, end: int, context: ReadContext) -> Any:
        """The rows [begin, end), as a table."""
        first, last = (int(np.searchsorted(self._firsts, row, side="right")) - 1 for row in (begin, end - 1))
        pieces = []
        with self._source() as source:
            batch_at = self._ipc.open_file(source).get_batch if self._is_file else partial(self._streamed, source)
            for index in range(first, last + 1):
                context.where = f"record batch {index}"
                pieces.append(self._slice(batch_at(index), index, begin, end))
        context.where = ""
        return self._arrow.Table.from_batches(pieces)

    def _slice(self, batch: Any, index: int, begin: int, end: int) -> Any:
        """What is in [begin, end) of the file's rows."""
        told, start = self.batches[index].rows, int(self._firsts[index])
        if batch.num_rows != told:
            raise ValueError(f"it has {batch.num_rows:,} rows, and its header says {told:,}")
        piece = batch.slice(max(begin - start, 0), min(end, start + told) - max(begin, start))
        piece.validate(full=True)  # offsets that point outside would end the process later on
        return piece

    def _streamed(self, source: Any, index: int) -> Any:
        source.seek(self.batches[index].begin)
        return self._ipc.read_record_batch(self._ipc.read_message(source), self._schema)

    def _source(self) -> Any:
        if is_url(self._part.path):
            return self._arrow.PythonFile(RangedFile(self._part.path, self._part.size))
        return self._arrow.memory_map(self._part.path)


def _read(source: Any, begin: int, end: int) -> bytes:
    source.seek(begin)
    data: bytes = source.read(min(end, source.size()) - begin)
    return data


def cut_arrow(path: str, size: int, limits: Limits, multiple: int) -> Cut:
    """Small record batches together, large ones in slices; each part can be read by itself.

    ``multiple``: parts but the last have a multiple of so many rows, wherever record batches end.
    """
    batches = ArrowRows(Part(0, path, size=size)).batches
    rows = sum(batch.rows for batch in batches)
    if multiple > 1:
        return cut_rows(rows, sum(batch.nbytes for batch in batches) / max(rows, 1), limits, multiple)
    cuts: list[Cut] = []
    begin = 0
    for batch in batches:
        cut = cut_rows(batch.rows, batch.nbytes / max(batch.rows, 1), limits)
        cuts.append(cut._replace(begins=cut.begins + begin, ends=cut.ends + begin))
        begin += batch.rows
    return _together(joined_cuts(cuts), limits) if rows else cut_rows(0, 1, limits)


def _together(cut: Cut, limits: Limits) -> Cut:
    """Neighbours are one part, as long as that is not too large."""
    firsts, nbytes = [0], 0
    for at, size in enumerate(cut.sizes.tolist()):
        if nbytes and nbytes + size > limits.part:
            firsts.append(at)
            nbytes = 0
        nbytes += size
    begins = np.asarray(firsts)
    ends = np.append(begins[1:], len(cut.sizes)) - 1
    sizes, rows = np.add.reduceat(cut.sizes, begins), np.add.reduceat(cut.rows, begins)
    return Cut(cut.begins[begins], cut.ends[ends], sizes, rows, np.arange(len(begins)))
