"""Parquet by rows: whole row groups where they are small, and slices of those that are large.

A slice is decoded page by page from the beginning of its row group on, as the format has no other way. So whoever reads
the slices of a row group one after the other decodes each page once, and never holds more than some pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker.sources.files.listing import Int64s
from stoker.sources.files.opening import is_url, needed
from stoker.sources.files.parts import Cut, Limits, Part, cut_rows, joined_cuts
from stoker.sources.files.ranges import RangedFile
from stoker.sources.files.read_context import ReadContext

_BUFFER_BYTES = 1 << 16  # of a column that are read from the disk at a time
_FAR_BUFFER_BYTES = 1 << 20  # and from far away
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}  # bytes of a value, decoded
_OBJECT_BYTES = 48  # that a string of Python's takes beside its characters
_PAGE_BYTES = 5 << 19  # of a column while its pages are read: a page, compressed and not, and its dictionary


class ParquetRows:
    """A Parquet file, open, and where a slice of it ended.

    Args:
        part: Of the file.
        columns: The names of those that are wanted; None: all.
        metadata: Of the file, where it was read before.
    """

    def __init__(self, part: Part, columns: list[str] | None, metadata: Any = None) -> None:
        arrow, parquet = needed("pyarrow", "reading Parquet"), needed("pyarrow.parquet", "reading Parquet")
        self._part, self._columns, self._arrow = part, columns, arrow
        far = is_url(part.path)
        self._source = RangedFile(part.path, part.size) if far else arrow.OSFile(part.path)
        self.file = parquet.ParquetFile(
            self._source,
            metadata=metadata,
            buffer_size=_FAR_BUFFER_BYTES if far else _BUFFER_BYTES,
            pre_buffer=False,  # of whole row groups
            page_checksum_verification=True,
        )
        told = self.file.metadata
        counts = [told.row_group(group).num_rows for group in range(told.num_row_groups)]
        self._firsts: Int64s = np.cumsum([0, *counts], dtype=np.int64)  # rows of row groups, and the end
        self.page_bytes = sum(map(self._page_bytes, range(told.num_columns))) if counts else 0
        self._stream: Iterator[Any] | None = None
        self._at = 0  # the row that the stream gives next,
        self._rest: Any = None  # out of this batch, if that is not used up

    @property
    def held(self) -> int:
        return self.page_bytes if self._stream is not None else 0

    def _page_bytes(self, index: int) -> int:
        """Of a column, if it is wanted."""
        column = self.file.metadata.row_group(0).column(index)
        is_wanted = self._columns is None or column.path_in_schema.partition(".")[0] in self._columns
        return min(_PAGE_BYTES, int(column.total_uncompressed_size)) if is_wanted else 0

    def skipped(self, row: int) -> float:
        if self._stream is None:
            return self.skipped_afresh(row)
        return row - self._at if row >= self._at else float("inf")

    def skipped_afresh(self, row: int) -> float:
        return row - int(self._firsts[self._group(row)])

    def again(self) -> ParquetRows:
        return ParquetRows(self._part, self._columns, self.file.metadata)

    def close(self) -> None:
        self.file.close()
        self._source.close()

    def read(self, begin: int, end: int, context: ReadContext) -> Any:
        """The rows [begin, end), as a table."""
        first, last = self._group(begin), self._group(end)
        context.where = f"rows {begin:,} to {end:,}, from row group {first} on"
        if self._firsts[first] == begin and self._firsts[last] == end:
            groups = list(range(first, last))
            table = self.file.read_row_groups(groups, columns=self._columns, use_threads=False)
        else:
            pieces = list(self._slices(begin, end))
            table = self._arrow.Table.from_batches(pieces) if pieces else self.file.schema_arrow.empty_table()
        if table.num_rows != end - begin:
            raise ValueError(f"it has {table.num_rows:,} rows there, where the end of the file says {end - begin:,}")
        context.where = ""
        return table

    def _group(self, row: int) -> int:
        """The row group that has it; behind the last row, the number of them."""
        return int(np.searchsorted(self._firsts, row, side="right")) - 1

    def _slices(self, begin: int, end: int) -> Iterator[Any]:
        if self._stream is None or self.skipped(begin) > self.skipped_afresh(begin):
            first = self._group(begin)
            groups = list(range(first, self.file.num_row_groups))
            self._stream = self.file.iter_batches(end - begin, groups, columns=self._columns, use_threads=False)
            self._at, self._rest = int(self._firsts[first]), None
        while self._at < end:
            batch = self._rest if self._rest is not None else next(self._stream, None)
            if batch is None:
                return
            skipped = min(max(begin - self._at, 0), len(batch))
            taken = min(len(batch), end - self._at)
            self._rest = batch.slice(taken) if taken < len(batch) else None
            self._at += taken
            if skipped < taken:
                yield batch.slice(skipped, taken - skipped)


def cut_parquet(path: str, size: int, limits: Limits, multiple: int) -> Cut:
    """Small row groups together; large ones in slices, which are a strand.

    ``multiple``: parts but the last have a multiple of so many rows, wherever row groups end.
    """
    opened = ParquetRows(Part(0, path, size=size), None)
    try:
        metadata = opened.file.metadata
        found = map(metadata.row_group, range(metadata.num_row_groups))
        groups = [(group.num_rows, _decoded_bytes(group)) for group in found]
        held = opened.page_bytes
    finally:
        opened.close()
    if multiple > 1:
        rows, nbytes = (sum(values) for values in zip(*groups, strict=True)) if groups else (0, 0)
        cut = cut_rows(rows, nbytes / max(rows, 1), limits, multiple)
        return cut._replace(strands=np.zeros_like(cut.strands), held=held)
    cut = _together(groups, limits)
    return cut._replace(held=held) if (np.diff(cut.strands) == 0).any() else cut


def _together(groups: list[tuple[int, int]], limits: Limits) -> Cut:
    cuts: list[Cut] = []
    begin = rows = nbytes = 0  # where the next part begins, and what it has so far
    for count, size in [*groups, (0, limits.part + 1)]:  # at the end, one that goes with no other
        if rows and nbytes + size > limits.part:
            cuts.append(_slices(begin, rows, nbytes, limits))
            begin, rows, nbytes = begin + rows, 0, 0
        rows, nbytes = rows + count, nbytes + size
    return joined_cuts(cuts) if cuts else cut_rows(0, 1, limits)


def _slices(begin: int, rows: int, nbytes: int, limits: Limits) -> Cut:
    """One strand: of equal slices, or of a single part where there is little."""
    size = limits.part // 2 if nbytes > limits.part else nbytes  # of a slice; its reader holds pages, too
    step = -(-rows // max(1, -(-nbytes // max(1, size))))
    begins = np.arange(begin, begin + rows, step)
    ends = np.minimum(begins + step, begin + rows)
    sizes = np.full(len(begins), size)
    return Cut(begins, ends, sizes, ends - begins, np.zeros(len(begins), np.int64))


def _decoded_bytes(group: Any) -> int:
    """Of a row group in memory; what is told of it is before dictionaries and runs are expanded."""
    columns = (group.column(index) for index in range(group.num_columns))
    return sum(map(_column_bytes, columns))


def _column_bytes(column: Any) -> int:
    told, values = int(column.total_uncompressed_size), int(column.num_values)
    width = _WIDTHS.get(column.physical_type)
    return told + values * _OBJECT_BYTES if width is None else max(told, values * width)
