"""The chunk files of a PyLoader, and the order in which each epoch goes through them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Chunk:
    """A file, by its name within the folder, as the ``number``-th of an epoch; both count from 0."""

    epoch: int
    number: int
    name: str


@dataclass(frozen=True)
class Chunks:
    """All chunks of all epochs."""

    names: tuple[str, ...]
    epochs: int
    shuffle: bool
    seed: int

    def __iter__(self) -> Iterator[Chunk]:
        for epoch in range(self.epochs):
            order = shuffled(len(self.names), self.seed, epoch) if self.shuffle else range(len(self.names))
            for number, index in enumerate(order):
                yield Chunk(epoch, number, self.names[index])


def shuffled(count: int, seed: int, epoch: int, name: str = "") -> list[int]:
    """The numbers below ``count`` in an order that follows from the rest, wherever it is asked for."""
    generator = np.random.default_rng(list(os.fsencode(f"{seed} {epoch} {name}")))
    order: list[int] = generator.permutation(count).tolist()
    return order


def folder_of(data_dir: Any) -> str:
    """As an absolute path, which workers find wherever they are."""
    try:
        folder = os.path.abspath(os.fsdecode(data_dir))
    except TypeError:
        raise TypeError(f"data_dir={data_dir!r}: pass the path of the folder with the chunk files") from None
    if not os.path.exists(folder):
        raise FileNotFoundError(f"data_dir={data_dir!r}: there is no folder {folder}")
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"data_dir={data_dir!r} is a file: pass the folder that it is in")
    return folder


def names_in(folder: str) -> tuple[str, ...]:
    """The files in a folder and those below it, sorted; but for hidden ones, and those in hidden folders."""
    found: list[str] = []
    for within, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.relpath(os.path.join(within, name), folder) for name in files if not name.startswith(".")]
    if not found:
        raise FileNotFoundError(f"data_dir: {folder} holds no files, hidden ones aside: put chunk files into it first")
    return tuple(sorted(found))


def _raise(error: OSError) -> None:
    raise error
