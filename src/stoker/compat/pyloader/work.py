"""What a PyLoader's workers do with a chunk: read it, cut it into batches, encode and collate each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stoker.compat.pyloader.chunks import Chunk, shuffled
from stoker.compat.pyloader.parts import DataCollator, DataReader, Dataset


@dataclass(frozen=True)
class Work:
    """Gives the chunk's epoch and its batches."""

    folder: str
    reader: DataReader
    dataset: Dataset
    collator: DataCollator

    def __call__(self, chunk: Chunk) -> tuple[int, list[dict[str, Any]]]:
        path = os.path.join(self.folder, chunk.name)
        where = self.where(chunk)
        with _noted(f"read_file raised it, over {where}"):
            given = self.reader.read_file(path)
        samples, count = _checked_samples(given, path)
        rows, size = self._order(count, chunk), self.reader.batch_size
        starts = range(0, count, size)
        batches = [
            self._batch(samples, rows[start : start + size], f"batch {number} of {where}")
            for number, start in enumerate(starts)
        ]
        return chunk.epoch, batches

    def where(self, chunk: Chunk) -> str:
        return f"{os.path.join(self.folder, chunk.name)} (file {chunk.number} of epoch {chunk.epoch})"

    def _order(self, count: int, chunk: Chunk) -> Sequence[int]:
        if not self.reader.shuffle:
            return range(count)
        return shuffled(count, self.reader.random_seed, chunk.epoch, chunk.name)

    def _batch(self, samples: Mapping[str, Any], rows: Sequence[int], where: str) -> dict[str, Any]:
        raw = {key: [values[row] for row in rows] for key, values in samples.items()}
        with _noted(f"batch_encode raised it, over {where}"):
            encoded = _checked_dict(self.dataset.batch_encode(raw), self.dataset, "batch_encode")
        with _noted(f"collate_batch raised it, over {where}"):
            return _checked_dict(self.collator.collate_batch(encoded), self.collator, "collate_batch")


@contextmanager
def _noted(note: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"stoker: {note}")
        raise


def _checked_dict(given: Any, part: object, method: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{type(part).__name__}.{method} gave {type(given).__name__}: let it return a dict")
    return given  # type: ignore[return-value]  # a dict, or what behaves as one


def _checked_samples(given: Any, path: str) -> tuple[Mapping[str, Any], int]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"read_file gave {_described(given)} for {path}: let it return (a dict of lists, n_sample)")
    samples, count = given
    if not isinstance(samples, Mapping) or isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(
            f"read_file gave ({type(samples).__name__}, {type(count).__name__}) for {path}: let it return (a dict of "
            f"lists, n_sample), of which n_sample is an int"
        )
    for key, values in samples.items():
        _check_values(key, values, count, path)
    if count < 0 or (count and not samples):
        raise ValueError(f"read_file gave n_sample={count} and {len(samples)} keys for {path}: there must be samples")
    return samples, count.__index__()


def _check_values(key: Any, values: Any, count: int, path: str) -> None:
    is_listed = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    if not is_listed or isinstance(values, str | bytes | Mapping):
        raise TypeError(f"read_file gave {type(values).__name__} as {key!r} of {path}: let it give a list")
    if len(values) != count:
        raise ValueError(
            f"read_file gave n_sample={count} for {path}, but {len(values)} values of {key!r}: each key needs one for "
            f"each sample"
        )


def _described(given: Any) -> str:
    return f"{type(given).__name__} of {len(given)}" if isinstance(given, tuple | list) else type(given).__name__
