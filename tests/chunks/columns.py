"""Columns that are written to several files, and what comes of them in batches."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

DAY = datetime.datetime(2024, 5, 1)
SIZES = [5, 0, 7, 1, 10]
TOTAL = sum(SIZES)


def form(column: Any) -> Any:
    """What it is: the dtype of an array and the shape of its rows, or what a list is of."""
    if isinstance(column, dict):
        return {key: form(inner) for key, inner in column.items()}
    if isinstance(column, np.ndarray):
        assert type(column) is np.ndarray
        return str(column.dtype) + (f" {column.shape[1:]}" if column.ndim > 1 else "")
    assert type(column) is list
    dtypes = {row.dtype for row in column if isinstance(row, np.ndarray)}
    assert len(dtypes) < 2
    return f"list of {dtypes.pop()}" if dtypes else "list"


def write(folder, table: pa.Table, sizes=SIZES, form="parquet"):
    start = 0
    for number, size in enumerate(sizes):
        part, path = table.slice(start, size), folder / f"{number}.{form}"
        if form == "parquet":
            pyarrow.parquet.write_table(part, path, row_group_size=3)
        else:
            with pa.ipc.new_file(str(path), part.schema) as writer:
                writer.write_table(part, max_chunksize=3)
        start += size
    return folder


def plain(value: Any) -> Any:
    """With None for all that stands for null, and Python's own numbers, so that it can be compared."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | np.ndarray):
        return [plain(inner) for inner in value]
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else value.astype("M8[us]" if value.dtype.kind == "M" else "m8[us]").tolist()
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    return None if isinstance(value, float) and np.isnan(value) else value
