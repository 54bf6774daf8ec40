"""SQLite: blobs in one table, with a write-ahead log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from benchmarks.stores.kinds import Kind

_PAGE = 65536  # bytes: the best of 4, 16 and 64 KB here, for both kinds
_MMAP = 8 << 30
_WAIT_S = 60.0


def _connect(directory: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(directory / "samples.db", timeout=_WAIT_S, isolation_level=None)
    for setting in (f"page_size={_PAGE}", "journal_mode=WAL", "synchronous=OFF", f"mmap_size={_MMAP}"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    return connection


class Writer:
    def __init__(self, directory: Path, kind: Kind, number: int) -> None:
        self._connection = _connect(directory)
        self._connection.execute("CREATE TABLE IF NOT EXISTS samples (id INTEGER PRIMARY KEY, record BLOB)")

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        pairs = zip(indices.tolist(), (record.data for record in records), strict=True)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO samples VALUES (?, ?)", pairs)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Reader:
    def __init__(self, directory: Path, kind: Kind) -> None:
        self._connection = _connect(directory)
        self._connection.execute("SELECT count(*) FROM (SELECT 1 FROM samples LIMIT 1)").fetchall()  # opens it really

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        wanted = indices.tolist()
        marks = ",".join("?" * len(wanted))
        # One statement a batch is a third quicker than one a sample, although its answers must be sorted again.
        found = dict(self._connection.execute(f"SELECT id, record FROM samples WHERE id IN ({marks})", wanted))
        np.concatenate([np.frombuffer(found[index], np.uint8) for index in wanted], out=out.reshape(-1))

    def present(self) -> np.ndarray:
        return np.array(self._connection.execute("SELECT id FROM samples").fetchall(), np.int64).reshape(-1)

    def close(self) -> None:
        self._connection.close()
