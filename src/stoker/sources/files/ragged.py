"""Columns that are no plain array: rows of different lengths, and values some of which are missing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths, one behind the other in ``values``: row i is from ``offsets[i]`` to the next one.

    ``nulls``: which rows are missing, if any are.
    """

    values: Any
    offsets: Array
    nulls: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def value_indices(self, rows: Array) -> tuple[Array, Array, Array | None]:
        """Of some rows: where all of their values are, the new offsets, and which rows are missing."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        indices = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return indices, offsets, None if self.nulls is None else self.nulls[rows]

    def part(self, start: int, stop: int) -> Ragged:
        """The rows from one to another, over the same memory."""
        offsets = self.offsets[start : stop + 1]
        nulls = None if self.nulls is None else self.nulls[start:stop]
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0], nulls)

    def take(self, rows: Array) -> Ragged:
        indices, offsets, nulls = self.value_indices(rows)
        return Ragged(self.values[indices], offsets, nulls)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Any]:
        """Views of the values; None where a row is missing."""
        bounds = self.offsets[start : None if stop is None else stop + 1].tolist()
        rows = [self.values[begin:end] for begin, end in itertools.pairwise(bounds)]
        if isinstance(self.values, Nullable):
            rows = [row.array() for row in rows]
        if self.nulls is None:
            return rows
        return [None if is_null else row for row, is_null in zip(rows, self.nulls[start:stop].tolist(), strict=True)]

    @staticmethod
    def joined(parts: Sequence[Ragged]) -> Ragged:
        """Several, one behind the other. Their values have one dtype."""
        ends = np.cumsum([0, *[part.offsets[-1] for part in parts]])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
        nulls = None
        if any(part.nulls is not None for part in parts):
            nulls = np.concatenate([np.zeros(len(one), bool) if one.nulls is None else one.nulls for one in parts])
        return Ragged(joined_values([part.values for part in parts]), np.concatenate([*offsets, ends[-1:]]), nulls)


@dataclass(frozen=True, eq=False)
class Nullable:
    """Values of a type that has none to stand for one that is missing, and which are."""

    values: Array
    nulls: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def shape(self) -> Any:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    def __getitem__(self, rows: Any) -> Nullable:
        return Nullable(self.values[rows], self.nulls[rows])

    def take(self, rows: Array) -> Nullable:
        return self[rows]

    def array(self) -> Array:
        """Of objects where some are missing, which are None."""
        if not self.nulls.any():
            return self.values
        objects = self.values.astype(object)
        objects[self.nulls] = None
        return objects

    def rows(self) -> list[Any]:
        """None in place of those that are missing."""
        if self.values.ndim > 1:
            return [self[row].array() for row in range(len(self))]
        pairs = zip(self.values, self.nulls.tolist(), strict=True)
        return [None if is_null else value for value, is_null in pairs]


def joined_values(parts: Sequence[Array | Nullable]) -> Array | Nullable:
    """Of one dtype, and rows of one shape."""
    values = np.concatenate([one.values if isinstance(one, Nullable) else one for one in parts])
    if not any(isinstance(one, Nullable) for one in parts):
        return values
    return Nullable(values, np.concatenate([_nulls(one) for one in parts]))


def _nulls(values: Array | Nullable) -> Array:
    return values.nulls if isinstance(values, Nullable) else np.zeros(values.shape, bool)
