"""What each store must do, and the list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.stores.kinds import Kind


class Writer(Protocol):
    """Opened by each writing process; the first one to open it makes the store."""

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        """Stores a batch. When this returns, the batch is to outlive the process (not the machine: nobody syncs)."""

    def close(self) -> None: ...


class Reader(Protocol):
    """Opened by each reading process."""

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        """Copies the records into `out`, which is warm; KeyError if one is missing."""

    def present(self) -> np.ndarray:
        """The indices that can be read."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Store:
    name: str
    module: str  # imported by the children alone, so that a missing package spoils one store and not the run
    writing: dict[str, Any]
    reading: dict[str, Any]
    fewer: int = 1  # times fewer samples, where all of them would take minutes
    knows_what_it_holds: bool = True

    def writer(self, directory: Path, kind: Kind, number: int) -> Writer:
        make: Callable[..., Writer] = self.load().Writer
        return make(directory, kind, number, **self.writing)

    def reader(self, directory: Path, kind: Kind) -> Reader:
        make: Callable[..., Reader] = self.load().Reader
        return make(directory, kind, **self.reading)

    def load(self) -> Any:
        return import_module(f"benchmarks.stores.{self.module}")


LIMIT = "bare memmap"
STORES = {
    store.name: store
    for store in (
        Store("LMDB", "with_lmdb", {"writemap": False}, {}),
        Store("LMDB, writemap", "with_lmdb", {"writemap": True}, {}),
        Store("Arrow IPC", "with_arrow", {}, {}),
        Store("SQLite", "with_sqlite", {}, {}),
        Store(".npy a sample", "with_npy", {}, {}, fewer=16),
        Store("plain file", "plain", {"own_segment": False}, {"verify": False}),
        Store("plain file, verified", "plain", {"own_segment": False}, {"verify": True}),
        Store("plain, a file a writer", "plain", {"own_segment": True}, {"verify": False}),
        Store(LIMIT, "limit", {}, {}, knows_what_it_holds=False),
    )
}
