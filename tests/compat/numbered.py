"""Datasets and functions for SwiftLoaders, in a module of their own so that spawned consumers find them too."""

from __future__ import annotations

import json
import os
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from stoker.compat.swift_loader import SwiftLoader


class Numbers:
    """Sample i is the int i."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Any:
        assert 0 <= index < self.n
        return index


class Gathered(Numbers):
    """Gives whole batches; single samples would be a mistake."""

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("__getitems__ should have been used")

    def __getitems__(self, indices: list[int]) -> Any:
        return np.asarray(indices)


class Lists(Numbers):
    def __getitem__(self, index: int) -> Any:
        return [index, [index + 1, np.full(3, index)], f"sample {index}"]


class Noisy(Numbers):
    def __getitem__(self, index: int) -> Any:
        return np.random.rand()


class Broken(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == self.n - 1:
            raise LookupError("the last one is missing")
        return index


class Unmakeable(Numbers):
    def __init__(self) -> None:
        raise OSError("no such disk")


def make_numbers(n: int) -> Numbers:
    return Numbers(n)


def total(samples: list[int]) -> dict[str, Any]:
    return {"sum": sum(samples), "rows": np.array(samples)}


def to_json(batch: Any) -> bytes:
    assert all(type(number) is int for number in batch["numbers"])
    return json.dumps(batch | {"encoded_by": os.getpid()}).encode()


def from_json(encoded: bytes) -> Any:
    assert type(encoded) is bytes
    return json.loads(encoded) | {"decoded_by": os.getpid()}


def numbered(samples: list[int]) -> dict[str, Any]:
    return {"numbers": samples}


def make(n: int = 10, batch_size: int = 3, consumers: int = 1, workers: int = 1, **options: Any) -> SwiftLoader:
    options.setdefault("shuffle", False)
    return SwiftLoader(options.pop("dataset_class", Numbers), {"n": n}, batch_size, consumers, workers, **options)


def read(loader: SwiftLoader, epochs: int = 1) -> list[list[list[int]]]:
    return [[batch.tolist() for batch in loader] for _ in range(epochs)]


def consume(index: int, loader: SwiftLoader, epochs: int, results: Connection | str) -> None:
    """A consumer process: sends or writes down what it got."""
    with loader:
        loader.start(index)
        found = {"length": len(loader), "epochs": read(loader, epochs)}
    if isinstance(results, str):
        with open(f"{results}/{index}.json", "w") as file:
            json.dump(found, file)
    else:
        results.send(found)
