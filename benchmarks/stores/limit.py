"""The limit: one big array in a file, at places known beforehand. It does not know what it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.stores.kinds import Kind


def _rows(directory: Path, kind: Kind, mode: str) -> np.ndarray:
    return np.asarray(np.memmap(directory / "rows", np.uint8, mode, shape=(kind.count, kind.size)))


class Writer:
    def __init__(self, directory: Path, kind: Kind, number: int) -> None:
        self._rows = _rows(directory, kind, "r+" if (directory / "rows").exists() else "w+")

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        self._rows[indices[0] : indices[-1] + 1] = records

    def close(self) -> None:
        del self._rows


class Reader:
    def __init__(self, directory: Path, kind: Kind) -> None:
        self._rows = _rows(directory, kind, "r")

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        np.take(self._rows, indices, axis=0, out=out, mode="clip")  # "raise" would go through a buffer

    def present(self) -> np.ndarray:
        raise NotImplementedError("a bare array doesn't know which of its rows were written")

    def close(self) -> None:
        del self._rows
