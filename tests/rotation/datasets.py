"""Datasets for rotation. Importable by workers, as users' own modules are."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle
import signal
from collections import Counter
from typing import Any

import numpy as np

from tests.datasets import Augmented, Record, Rows


class Counted(Augmented):
    """Writes down each call."""

    def __init__(self, log: str, n: int = 40) -> None:
        super().__init__(n)
        self.log = str(log)

    def __getitem__(self, index: int) -> dict[str, Any]:
        note(self.log, index)
        return super().__getitem__(index)


def note(log: str, index: int) -> None:
    """One line, in one go: several processes share the file."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{index}\n".encode())
    os.close(fd)


def calls(log: Any) -> Counter[int]:
    with open(log) as lines:
        return Counter(map(int, lines))


class Swelling(Rows):
    """From 40 bytes to a hundred times that, at random and growing with the index."""

    def __getitem__(self, index: int) -> np.ndarray:
        length = 5 + index * 500 // len(self) * (index * 7919 % 10 + 1) // 10
        return np.full(length, index, np.int64)


class Various(Rows):
    """No two neighbours have the same form."""

    def __getitem__(self, index: int) -> Any:
        kinds = [
            index,
            f"sample {index}",
            np.full(index + 1, index, np.int16),
            {"a": {"b": [np.float32(index), (index, None)]}, "text": "ä" * index},
            Record(np.full((2, index + 1), index), b"\0" * index),
            np.array([f"{index}", "b"]),
            np.array(index, dtype=">i4"),
            np.array([(index, 0.5)], dtype=[("x", "i4"), ("y", "f8")]),
            np.full((4, 6), index)[::2, ::-3],
            [],
        ]
        return kinds[index % len(kinds)]


class Marked(np.ndarray):
    """An array of a class of its own."""


class Open(dict[str, Any]):
    """Its items are attributes, too."""

    __getattr__ = dict.__getitem__


@dataclasses.dataclass
class Boxed:
    """Has an attribute that is no field."""

    width: int

    def __post_init__(self) -> None:
        self.area = self.width**2


class Particular(Rows):
    """Samples of classes that a batch would not keep."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "marked": np.full(3, index).view(Marked),
            "open": Open(number=index, inner=np.arange(2)),
            "boxed": Boxed(index),
            "masked": np.ma.masked_equal([index, 1], 1),
            "counter": Counter("abba" * index),
            "path": pathlib.PurePosixPath(str(index)),
            "enum": signal.Signals(index + 1),
            "big": 2**100 + index,
            "objects": np.array([index, None, "x"], dtype=object),
        }


def as_list(samples: list[Any]) -> list[Any]:
    return samples


def pickled(samples: list[Any]) -> bytes:
    """Just what the collate was given: a batch would not keep all of it."""
    return pickle.dumps(samples, 5)


def spoil(samples: list[Any]) -> np.ndarray:
    """Writes into what it was given."""
    for sample in samples:
        sample += 1000
    return np.stack(samples)


class Fresh(Rows):
    """Gives away arrays of their own."""

    def __getitem__(self, index: int) -> np.ndarray:
        return self.data[index].copy()
