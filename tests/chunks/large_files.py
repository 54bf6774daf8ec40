"""Files of several forms that are large where parts are tiny."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from stoker import Loader

ROWS = 150


def table(first: int, rows: int) -> pa.Table:
    values = np.arange(first, first + rows)
    return pa.table({"number": values, "file": np.zeros(rows, np.int64), "word": [f"w{n}" for n in values]})


def write_jsonl(path: Path, first: int, rows: int) -> None:
    path.write_text("".join(json.dumps({"number": first + nth, "file": 0}) + "\n" for nth in range(rows)))


def write_parquet(path: Path, first: int, rows: int, group: int = 60) -> None:
    pyarrow.parquet.write_table(table(first, rows), path, row_group_size=group, data_page_size=64)


def write_arrow(path: Path, first: int, rows: int) -> None:
    with pyarrow.ipc.new_file(path, table(0, 1).schema) as writer:
        writer.write_table(table(first, rows), max_chunksize=40)


def write_csv(path: Path, first: int, rows: int) -> None:
    pyarrow.csv.write_csv(table(first, rows), path)


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet, "arrow": write_arrow}


def part_count(loader: Loader) -> int:
    return len(loader._session._agenda.epochs[0].parts)
