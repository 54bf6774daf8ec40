"""Datasets for dataset_server's DataLoader, and how tests make and read one."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from stoker.compat.dataset_server import DataLoader
from tests.compat.numbered import Numbers

# As torch would see it: when the dataset's module is imported, and not later.
VISIBLE_AT_IMPORT = os.environ.get("CUDA_VISIBLE_DEVICES", "all")


class Noisy(Numbers):
    """A number, and noise that tells by whom it was made when."""

    def __getitem__(self, index: int) -> Any:
        return index, np.random.rand()


class Told(Noisy):
    """Writes down each sample that it makes."""

    def __init__(self, n: int, file: str) -> None:
        super().__init__(n)
        self.file = file

    def __getitem__(self, index: int) -> Any:
        sample = super().__getitem__(index)
        with open(self.file, "a") as file:
            file.write(f"{sample}\n")
        return sample


class Images(Numbers):
    """Arrays, and a number."""

    def __getitem__(self, index: int) -> Any:
        return {"image": np.full((2, 3), index, np.float32), "label": index}


class Timed(Numbers):
    """When it was made, by a clock that all processes share."""

    def __getitem__(self, index: int) -> Any:
        return time.monotonic()


class Visible(Numbers):
    """Which process made it, and which GPUs it sees."""

    def __getitem__(self, index: int) -> Any:
        return os.getpid(), VISIBLE_AT_IMPORT, os.environ.get("CUDA_VISIBLE_DEVICES", "all")


class Broken(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == 4:
            raise LookupError("four is missing")
        return index


class Unmakeable(Numbers):
    def __init__(self, n: int) -> None:
        raise OSError("no such disk")


class Endless(Numbers):
    """Never gives anything."""

    def __getitem__(self, index: int) -> Any:
        while True:
            time.sleep(60)


def told(file: Path) -> list[Any]:
    """What a ``Told`` has made."""
    return [ast.literal_eval(line) for line in file.read_text().splitlines()]


def make(
    n: int = 10, batch_size: int = 3, nb_worker: int = 1, dataset_class: Any = Numbers, **options: Any
) -> DataLoader:
    return DataLoader(dataset_class, {"n": n} | options.pop("params", {}), batch_size, nb_worker, **options)


def read(loader: DataLoader, epochs: int = 1) -> list[list[list[int]]]:
    return [[batch.tolist() for batch in loader] for _ in range(epochs)]


def pairs(loader: DataLoader, epochs: int = 1) -> list[list[tuple[int, float]]]:
    """Of a ``Noisy`` dataset: the samples of each epoch, in order."""
    return [
        [sample for numbers, noise in loader for sample in zip(numbers.tolist(), noise.tolist(), strict=True)]
        for _ in range(epochs)
    ]
