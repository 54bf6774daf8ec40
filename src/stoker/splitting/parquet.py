"""Rows of a Parquet file, batch by batch, with the schema and the compression that they have."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import Any

from stoker.errors import ChunkError
from stoker.sources.files.opening import needed, open_raw
from stoker.splitting.cutter import Written
from stoker.splitting.limit import Limit
from stoker.splitting.sink import Sink
from stoker.splitting.source import Source

_ROWS_AT_ONCE = 4096
_GROUP_BYTES = 64 << 20  # of rows that are held until they are written as a row group
_CODECS = {"SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"}


class ParquetCutter:
    """An offset is in rows. The bytes of rows are those that Arrow needs for them, uncompressed."""

    def __init__(self, source: Source, limit: Limit, offset: int, on_read: Callable[[int], None]) -> None:
        self.offset = offset
        self._arrow = needed("pyarrow", "splitting .parquet")
        self._parquet = needed("pyarrow.parquet", "splitting .parquet")
        self._shown, self._size = source.shown, source.size or 0
        self._limit, self._on_read = limit, on_read
        self._raw = open_raw(source.path)
        try:
            self._file = self._parquet.ParquetFile(self._raw)
        except (self._arrow.ArrowInvalid, OSError) as error:
            self._raw.close()
            raise self._broken(error) from error
        self._batches = self._read()
        self._rest: Any = None

    def more(self) -> bool:
        while not self._rest:
            try:
                self._rest = next(self._batches, None)
            except (self._arrow.ArrowInvalid, OSError) as error:
                raise self._broken(error) from error
            if self._rest is None:
                return False
        return True

    def write(self, sink: Sink) -> Written:
        rows = nbytes = held_bytes = 0
        held: list[Any] = []
        with self._parquet.ParquetWriter(sink.file, self._file.schema_arrow, compression=self._codecs()) as writer:
            while self.more() and (n := self._fitting(rows, nbytes)):
                piece, self._rest = self._rest.slice(0, n), self._rest.slice(n)
                held.append(piece)
                rows, nbytes, held_bytes = rows + n, nbytes + _nbytes(piece), held_bytes + _nbytes(piece)
                self.offset += n
                if held_bytes >= _GROUP_BYTES:
                    writer.write_table(self._arrow.Table.from_batches(held))
                    held, held_bytes = [], 0
            if held:
                writer.write_table(self._arrow.Table.from_batches(held))
        return Written(rows, nbytes)

    def close(self) -> None:
        self._file.close()
        self._raw.close()

    def _read(self) -> Iterator[Any]:
        """The rows from ``offset`` on, in the same batches wherever it begins."""
        done, metadata = 0, self._file.metadata
        for group in range(metadata.num_row_groups):
            if done + metadata.row_group(group).num_rows <= self.offset:
                done += metadata.row_group(group).num_rows
                continue
            for batch in self._file.iter_batches(_ROWS_AT_ONCE, row_groups=[group]):
                skipped = min(len(batch), max(0, self.offset - done))
                done += len(batch)
                self._on_read(self._size * done // metadata.num_rows)
                yield batch.slice(skipped)

    def _fitting(self, rows: int, nbytes: int) -> int:
        """How many of the rows that are read still go into a chunk."""
        at_least, most = int(not rows), len(self._rest)
        if self._limit.count is not None:
            return min(most, self._limit.count - rows)
        room = (self._limit.size or 0) - nbytes
        n = bisect.bisect_right(range(1, most + 1), room, key=lambda n: _nbytes(self._rest.slice(0, n)))
        return max(at_least, n)

    def _codecs(self) -> Any:
        metadata = self._file.metadata
        if not metadata.num_row_groups:
            return "snappy"
        columns = (metadata.row_group(0).column(k) for k in range(metadata.num_columns))
        told = {column.path_in_schema: column.compression for column in columns}
        return {path: codec if codec in _CODECS else "NONE" for path, codec in told.items()}

    def _broken(self, error: Exception) -> ChunkError:
        return ChunkError(f"{self._shown} cannot be read at or behind row {self.offset:,}: {error}")


def _nbytes(batch: Any) -> int:
    """Without dictionaries, which belong to no row."""
    columns = (column.indices if hasattr(column, "indices") else column for column in batch.columns)
    return sum(column.nbytes for column in columns)
