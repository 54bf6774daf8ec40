"""Chunk files with numbers, and PyLoader's parts that read them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stoker.compat.pyloader import DataCollator, DataLoader, DataReader, Dataset, NumpyDataCollator


def note(log: str | Path, line: str) -> None:
    """At the end of the file, whoever else writes to it."""
    with open(log, "a") as file:
        file.write(f"{line}\n")


class Numbers(DataReader):
    """One number a line."""

    def read_file(self, path):
        numbers = [int(line) for line in Path(path).read_text().split()]
        return {"x": numbers, "name": [Path(path).name] * len(numbers)}, len(numbers)


class Doubled(Dataset):
    def batch_encode(self, batch_data):
        return {"x": batch_data["x"], "double": [2 * x for x in batch_data["x"]]}


class Noisy(Dataset):
    """Draws from numpy's generator."""

    def batch_encode(self, batch_data):
        return {"x": batch_data["x"], "noise": np.random.rand(len(batch_data["x"])).tolist()}


class Logging(Numbers):
    """Writes down each file that it reads, and who it is."""

    def __init__(self, log, *args, **options):
        super().__init__(*args, **options)
        self.log = str(log)

    def read_file(self, path):
        note(self.log, f"{os.getpid()} {Path(path).name}")
        return super().read_file(path)


class Given(DataReader):
    """Gives what it was given."""

    def __init__(self, given):
        super().__init__()
        self.given = given

    def read_file(self, path):
        return self.given


class Failing(Numbers, Dataset, DataCollator):
    """Raises in the method that it is told, over number 5."""

    def __init__(self, method: str = ""):
        super().__init__(batch_size=2)
        self.method = method

    def read_file(self, path):
        samples, count = super().read_file(path)
        self._fail("read_file", samples)
        return samples, count

    def batch_encode(self, batch_data):
        self._fail("batch_encode", batch_data)
        return batch_data

    def collate_batch(self, batch_data):
        self._fail("collate_batch", batch_data)
        return {"x": np.array(batch_data["x"])}

    def _fail(self, method: str, samples: dict[str, list[Any]]) -> None:
        if method == self.method and 5 in samples["x"]:
            raise LookupError("five")


def write_chunks(folder: Path, sizes: Sequence[int]) -> Path:
    """Files with so many numbers, which go on from one to the next."""
    folder.mkdir(exist_ok=True)
    begin = 0
    for number, size in enumerate(sizes):
        (folder / f"chunk{number:03}").write_text("".join(f"{n}\n" for n in range(begin, begin + size)))
        begin += size
    return folder


def make(folder: Path, reader: Any = None, dataset: Any = None, collator: Any = None, **options: Any) -> DataLoader:
    return DataLoader(
        Numbers() if reader is None else reader,
        Doubled() if dataset is None else dataset,
        NumpyDataCollator() if collator is None else collator,
        folder,
        **options,
    )


def read(loader: DataLoader) -> list[list[int]]:
    return [batch["x"].tolist() for batch in loader]
