"""Samples as columns: one array or list for each key, or one array whose rows are the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.errors import ChunkError

Array = np.ndarray[Any, Any]
Column = Array | list[Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of equal length. The only key of a bare array is None."""

    columns: Mapping[str | None, Column]

    def __post_init__(self) -> None:
        for key, column in self.columns.items():
            if not isinstance(column, list) and (not isinstance(column, np.ndarray) or column.ndim == 0):
                what = f"column {key!r}" if key is not None else "the array"
                raise ValueError(f"{what} has no rows: it is {_kind(column)}, not a list or an array")
        lengths = {key: len(column) for key, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{key!r}: {length:,}" for key, length in lengths.items())
            raise ValueError(f"the columns have different lengths ({told}): give each as many as there are samples")

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def take(self, indices: Sequence[int] | Array) -> Columns:
        """The samples at ``indices``, in their order."""
        places = np.asarray(indices, np.intp)
        return Columns({key: _taken(column, places) for key, column in self.columns.items()})

    def rows(self) -> list[Any]:
        """The samples: a dict each, or a row of the bare array."""
        if None in self.columns:
            return list(self.columns[None])
        keys = tuple(self.columns)
        return [dict(zip(keys, row, strict=True)) for row in zip(*self.columns.values(), strict=True)]

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Several with the same keys, one behind the other."""
        keys = parts[0].columns.keys()
        for part in parts:
            if part.columns.keys() != keys:
                raise ChunkError(
                    f"the columns differ: {_told(keys)} in one file, {_told(part.columns.keys())} in another"
                )
        filled = [part for part in parts if len(part)] or list(parts[:1])
        return Columns({key: _joined([part.columns[key] for part in filled]) for key in keys})


_PLAIN = {int: np.int64, float: np.float64, bool: np.bool_, str: None, bytes: None}  # None: they stay a list


def as_columns(samples: list[Any]) -> Columns | None:
    """Samples that are flat dicts with the same keys, and under each key values of one plain type; None: they are not.

    Cutting columns into batches is many times as quick as collating each batch.
    """
    if set(map(type, samples)) != {dict} or len(set(map(len, samples))) > 1:
        return None
    columns: dict[str | None, Column] = {}
    for key in samples[0]:
        try:
            values = [sample[key] for sample in samples]
        except KeyError:
            return None
        kinds = set(map(type, values))
        if type(key) is not str or len(kinds) > 1 or not kinds.issubset(_PLAIN):
            return None
        dtype = _PLAIN[kinds.pop()]
        try:
            columns[key] = values if dtype is None else np.array(values, dtype)
        except OverflowError:  # an int of more than 64 bits
            return None
    return Columns(columns)


def _taken(column: Column, places: Array) -> Column:
    return [column[i] for i in places.tolist()] if isinstance(column, list) else column[places]


def _joined(columns: list[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(columns) and len({(_family(a.dtype), a.shape[1:]) for a in arrays}) == 1:
        return np.concatenate(arrays)
    return [value for column in columns for value in (column if isinstance(column, list) else column.tolist())]


def _family(dtype: np.dtype[Any]) -> str:
    """Dtypes of one family are joined in one array: numbers with numbers, but no times or truths with numbers."""
    return "number" if dtype.kind in "iuf" else dtype.kind


def _told(keys: Any) -> str:
    return "a bare array" if None in keys else ", ".join(sorted(map(repr, keys))) or "none"


def _kind(value: object) -> str:
    return "a number" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"
