"""One .npy file a sample, given its name when it is whole; a thousand to a folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks.stores.kinds import Kind

_A_FOLDER = 1000


class Writer:
    def __init__(self, directory: Path, kind: Kind, number: int) -> None:
        self._directory = directory
        self._unfinished = directory / f"unfinished-{number}"
        for folder in range(-(-kind.count // _A_FOLDER)):
            (directory / str(folder)).mkdir(exist_ok=True)

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        for index, record in zip(indices.tolist(), records, strict=True):
            with open(self._unfinished, "wb") as file:
                np.save(file, record)
            os.replace(self._unfinished, f"{self._directory}/{index // _A_FOLDER}/{index}.npy")

    def close(self) -> None:
        pass


class Reader:
    def __init__(self, directory: Path, kind: Kind) -> None:
        self._directory = directory

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        names = [f"{self._directory}/{index // _A_FOLDER}/{index}.npy" for index in indices.tolist()]
        np.concatenate([np.load(name, mmap_mode="r") for name in names], out=out.reshape(-1))

    def present(self) -> np.ndarray:
        return np.array([int(path.stem) for path in self._directory.glob("*/*.npy")], np.int64)

    def close(self) -> None:
        pass
