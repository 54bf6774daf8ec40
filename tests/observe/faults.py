"""Datasets with samples that fail, and what is left of their streams."""

from __future__ import annotations

import json
import os
import time

import numpy as np

from tests.datasets import Augmented, Rows
from tests.streams import kept


class Patchy(Rows):
    """Raises for some indices."""

    def __init__(self, n: int = 40, bad: tuple[int, ...] | list[int] = (13,)) -> None:
        super().__init__(n)
        self.bad = frozenset(bad)

    def __getitem__(self, index: int) -> np.ndarray:
        if index in self.bad:
            raise ValueError(f"sample {index} is bad")
        return self.data[index]


class Moody(Augmented):
    """Raises for some indices always, and for others when the numbers drawn are such."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index % 9 == 4 or np.random.rand() < 0.1:
            raise RuntimeError(f"in no mood for {index}")
        return sample


class Fatal(Rows):
    """Ends its worker at some indices, hangs at others, raises at yet others."""

    def __init__(self, n: int = 40, *, deadly=(), endless=(), bad=()) -> None:
        super().__init__(n)
        self.deadly, self.endless, self.bad = deadly, endless, bad

    def __getitem__(self, index: int) -> np.ndarray:
        if index in self.deadly:
            os._exit(3)
        if index in self.endless:
            time.sleep(600)
        if index in self.bad:
            raise ValueError(f"sample {index} is bad")
        return self.data[index]


class FatalTogether(Fatal):
    """The same, where whole batches are asked for."""

    def __getitems__(self, indices: list[int]) -> list[np.ndarray]:
        return [self[index] for index in indices]


class Maker:
    """Ways to make a dataset."""

    def __call__(self):
        return Patchy()

    def make(self, n):
        return Patchy(n)

    @classmethod
    def of(cls, n):
        return Patchy(n)


def taken(batches) -> list[int]:
    """The indices of all samples, in order."""
    return [int(index) for batch in batches for index in np.reshape(batch, (-1, 4))[:, 0]]


def take(loader, count):
    """The next so many batches, over the borders of epochs."""
    got = []
    while len(got) < count:
        for batch in loader:
            got.append(kept(batch))
            if len(got) == count:
                break
    return got


def but(*left_out: int, n: int = 40) -> list[int]:
    return [index for index in range(n) if index not in left_out]


def lines(file) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def logged(caplog, words: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if words in record.getMessage()]
