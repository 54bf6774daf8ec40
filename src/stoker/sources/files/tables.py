"""Tables that pyarrow reads: CSV, Parquet, and Arrow's own files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from stoker.sources.files.columns import Column, Columns
from stoker.sources.files.opening import ending, is_url, needed, open_file, open_pieces
from stoker.sources.files.place import Place

_FILE = b"ARROW1"  # begins an Arrow file; a stream has no such mark
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def read_csv(path: str, place: Place) -> Columns:
    """Columns by the names in the first line; their types are guessed from what is in them."""
    arrow, csv = needed("pyarrow", "reading CSV"), needed("pyarrow.csv", "reading CSV")
    with open_file(path) as file:
        data = arrow.BufferReader(file.read())
    tabs = ending(path)[0] == "tsv"
    table = csv.read_csv(
        data,
        read_options=csv.ReadOptions(use_threads=False),  # so that errors name the row
        parse_options=csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True),
    )
    return _columns(table)


def read_parquet(path: str, place: Place) -> Columns:
    """All row groups."""
    with _parquet(path, whole=True) as file:
        groups = []
        for index in range(file.num_row_groups):
            place.where = f"row group {index}"
            groups.append(file.read_row_group(index, use_threads=False))
            _check_rows(groups[-1].num_rows, file.metadata.row_group(index).num_rows)
        place.where = ""
        table = (
            needed("pyarrow", "reading Parquet").concat_tables(groups) if groups else file.schema_arrow.empty_table()
        )
        _check_rows(table.num_rows, file.metadata.num_rows)
    return _columns(table)


def count_parquet(path: str, place: Place) -> int:
    """The number of rows, by the end of the file."""
    with _parquet(path, whole=False) as file:
        return int(file.metadata.num_rows)


def read_arrow(path: str, place: Place) -> Columns:
    """All record batches, of a file or a stream."""
    arrow = needed("pyarrow", "reading Arrow")
    with open_file(path) as file, arrow.BufferReader(file.read()) as source:
        schema, batches = _batches(source, place)
        checked = []
        for batch in batches:
            batch.validate(full=True)  # offsets that point outside would end the process later on
            checked.append(batch)
        place.where = ""
        return _columns(arrow.Table.from_batches(checked, schema))


def count_arrow(path: str, place: Place) -> int:
    """The number of rows; of a file that is here and not compressed, only what describes the batches is read."""
    arrow = needed("pyarrow", "reading Arrow")
    if not is_url(path) and not ending(path)[1]:
        with arrow.memory_map(path) as source:
            return sum(batch.num_rows for batch in _batches(source, place)[1])
    with open_file(path) as file, arrow.BufferReader(file.read()) as source:
        return sum(batch.num_rows for batch in _batches(source, place)[1])


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


def _batches(source: Any, place: Place) -> tuple[Any, Iterator[Any]]:
    """The schema, and the record batches one after the other."""
    ipc = needed("pyarrow.ipc", "reading Arrow")
    is_file = source.read(len(_FILE)) == _FILE
    source.seek(0)
    if is_file:
        file = ipc.open_file(source)
        return file.schema, (_batch(file, index, place) for index in range(file.num_record_batches))
    stream = ipc.open_stream(source)
    return stream.schema, _streamed(stream, source, place)


def _batch(file: Any, index: int, place: Place) -> Any:
    place.where = f"record batch {index}"
    return file.get_batch(index)


def _streamed(stream: Any, source: Any, place: Place) -> Iterator[Any]:
    """The batches of a stream; pyarrow takes the end of the file for its end, so the mark of the end is looked for."""
    for index in count():
        begin = source.tell()
        place.where = f"record batch {index}, byte {begin:,}"
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            break
        yield batch
    end = source.tell()
    source.seek(max(begin, end - len(_END_OF_STREAM)))
    if source.read(len(_END_OF_STREAM)) != _END_OF_STREAM:
        raise EOFError("the stream ends without the mark that ends one: it was cut short")
    if end != source.size():
        raise ValueError(f"there is more behind the end of the stream, from byte {end:,}")


def _columns(table: Any) -> Columns:
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several columns have the same name: {', '.join(map(repr, twice))}")
    return Columns({name: _column(table.column(name).combine_chunks()) for name in names})


def _column(array: Any) -> Column:
    """An array of numpy where every value is a number or a time, or a list of as many of them; else a list."""
    types = needed("pyarrow.types", "reading columns")
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        return list(array.to_pylist())
    if _is_number(types, array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    inner = _inner(types, array)
    return list(array.to_pylist()) if inner is None else inner


def _is_number(types: Any, kind: Any) -> bool:
    tests = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_timestamp,
        types.is_duration,
        types.is_date32,
    )
    return any(test(kind) for test in tests)


def _inner(types: Any, array: Any) -> Column | None:
    """The values of lists that are all of one length, as an array of one more dimension."""
    kind = array.type
    if types.is_fixed_size_list(kind):
        length = kind.list_size
    elif (types.is_list(kind) or types.is_large_list(kind)) and len(array):
        lengths = np.diff(array.offsets.to_numpy())
        length = int(lengths[0])
        if (lengths != length).any():
            return None
    else:
        return None
    values = _column(array.flatten())
    return values.reshape(len(array), length, *values.shape[1:]) if isinstance(values, np.ndarray) else None
