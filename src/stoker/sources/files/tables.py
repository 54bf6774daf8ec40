"""Tables that pyarrow reads: CSV, Parquet, and Arrow's own files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from stoker.sources.files.arrow_columns import columns_of
from stoker.sources.files.columns import Columns
from stoker.sources.files.delimited import parse_csv, read_delimited
from stoker.sources.files.open_files import OpenFiles
from stoker.sources.files.opening import ending, is_url, needed, open_file, open_pieces
from stoker.sources.files.parts import Part
from stoker.sources.files.read_context import ReadContext
from stoker.sources.files.record_batches import END_OF_STREAM, MAGIC, ArrowRows
from stoker.sources.files.row_groups import ParquetRows
from stoker.sources.files.selection import Selection


def read_csv(path: str, context: ReadContext, selection: Selection) -> Columns:
    """Columns by the names in the first line; their types are guessed from what is in them."""
    with open_file(path) as file:
        return columns_of(parse_csv(file.read(), path, selection), selection)


def read_csv_part(part: Part, context: ReadContext, selection: Selection, files: OpenFiles) -> Columns:
    """The records of a part."""
    return columns_of(read_delimited(part, selection), selection)


def read_parquet(path: str, context: ReadContext, selection: Selection) -> Columns:
    """All row groups."""
    with _parquet(path, whole=True) as file:
        selection.check(file.schema_arrow.names, dotted=True)
        wanted = None if selection.columns is None else list(selection.columns)
        groups = []
        for index in range(file.num_row_groups):
            context.where = f"row group {index}"
            groups.append(file.read_row_group(index, columns=wanted, use_threads=False))
            _check_rows(groups[-1].num_rows, file.metadata.row_group(index).num_rows)
        context.where = ""
        table = (
            needed("pyarrow", "reading Parquet").concat_tables(groups) if groups else file.schema_arrow.empty_table()
        )
        _check_rows(table.num_rows, file.metadata.num_rows)
    return columns_of(table, selection)


def read_parquet_rows(part: Part, context: ReadContext, selection: Selection, files: OpenFiles) -> Columns:
    """The rows of a part."""
    wanted = None if selection.columns is None else list(selection.columns)
    with files.lend(part, lambda part: ParquetRows(part, wanted)) as opened:
        selection.check(opened.file.schema_arrow.names, dotted=True)
        return columns_of(opened.read(*_bounds(part), context), selection)


def _bounds(part: Part) -> tuple[int, int]:
    if not part.end:
        raise ValueError("its metadata could not be read when the epoch was planned, but it can be read now")
    return part.begin, part.end


def count_parquet(path: str, context: ReadContext) -> int:
    """The number of rows, by the end of the file."""
    with _parquet(path, whole=False) as file:
        return int(file.metadata.num_rows)


def read_arrow(path: str, context: ReadContext, selection: Selection) -> Columns:
    """All record batches, of a file or a stream."""
    arrow = needed("pyarrow", "reading Arrow")
    with open_file(path) as file, arrow.BufferReader(file.read()) as source:
        schema, batches = _batches(source, context)
        checked = []
        for batch in batches:
            batch.validate(full=True)  # offsets that point outside would end the process later on
            checked.append(batch)
        context.where = ""
        return columns_of(arrow.Table.from_batches(checked, schema), selection)


def read_arrow_rows(part: Part, context: ReadContext, selection: Selection, files: OpenFiles) -> Columns:
    """The rows of a part."""
    with files.lend(part, ArrowRows) as opened:
        return columns_of(opened.read(*_bounds(part), context), selection)


def count_arrow(path: str, context: ReadContext) -> int:
    """The number of rows; of a file that is here and not compressed, only what describes the batches is read."""
    arrow = needed("pyarrow", "reading Arrow")
    if not is_url(path) and not ending(path)[1]:
        with arrow.memory_map(path) as source:
            return sum(batch.num_rows for batch in _batches(source, context)[1])
    with open_file(path) as file, arrow.BufferReader(file.read()) as source:
        return sum(batch.num_rows for batch in _batches(source, context)[1])


@contextmanager
def _parquet(path: str, *, whole: bool) -> Iterator[Any]:
    """The file; ``whole`` reads all of it at once, which is quicker from far away than piece by piece."""
    arrow, parquet = needed("pyarrow", "reading Parquet"), needed("pyarrow.parquet", "reading Parquet")
    with open_file(path) if whole else open_pieces(path) as file:
        source = arrow.BufferReader(file.read()) if whole or ending(path)[1] else file
        with parquet.ParquetFile(source, page_checksum_verification=True) as opened:
            yield opened


def _check_rows(found: int, told: int) -> None:
    if found != told:
        raise ValueError(f"it has {found:,} rows, where the end of the file says {told:,}")


def _batches(source: Any, context: ReadContext) -> tuple[Any, Iterator[Any]]:
    """The schema, and the record batches one after the other."""
    ipc = needed("pyarrow.ipc", "reading Arrow")
    is_file = source.read(len(MAGIC)) == MAGIC
    source.seek(0)
    if is_file:
        file = ipc.open_file(source)
        return file.schema, (_batch(file, index, context) for index in range(file.num_record_batches))
    stream = ipc.open_stream(source)
    return stream.schema, _streamed(stream, source, context)


def _batch(file: Any, index: int, context: ReadContext) -> Any:
    context.where = f"record batch {index}"
    return file.get_batch(index)


def _streamed(stream: Any, source: Any, context: ReadContext) -> Iterator[Any]:
    """The batches of a stream; pyarrow takes the end of the file for its end, so the mark of the end is looked for."""
    for index in count():
        begin = source.tell()
        context.where = f"record batch {index}, byte {begin:,}"
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            break
        yield batch
    end = source.tell()
    source.seek(max(begin, end - len(END_OF_STREAM)))
    if source.read(len(END_OF_STREAM)) != END_OF_STREAM:
        raise EOFError("the stream ends without the mark that ends one: it was cut short")
    if end != source.size():
        raise ValueError(f"there is more behind the end of the stream, from byte {end:,}")
