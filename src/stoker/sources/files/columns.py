"""Samples as columns: one array or list for each key, or one array whose rows are the samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from stoker.errors import ChunkError

Array = np.ndarray[Any, Any]
Column = Array | list[Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of equal length. The only key of a bare array is None.

    ``gathered``: out of samples that were dicts of plain values, to which ``rows`` leads back.
    """

    columns: Mapping[str | None, Column]
    gathered: bool = False

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
        return Columns({key: _taken(column, places) for key, column in self.columns.items()}, self.gathered)

    def rows(self) -> list[Any]:
        """The samples: a dict each, or a row of the bare array."""
        if None in self.columns:
            return list(self.columns[None])
        keys, columns = tuple(self.columns), list(self.columns.values())
        if self.gathered:
            columns = [column if isinstance(column, list) else column.tolist() for column in columns]
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

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
        return Columns({key: _joined([part.columns[key] for part in filled]) for key in keys}, parts[0].gathered)


Samples = Columns | list[Any]


def joined(parts: Sequence[Samples]) -> Samples:
    """The samples of several files, or several pieces of one, one behind the other."""
    parts = [part for part in parts if isinstance(part, Columns) or part]
    if len(parts) == 1:
        return parts[0]
    columns = [part for part in parts if isinstance(part, Columns)]
    if len(columns) == len(parts) > 0 and _are_alike(columns):
        return Columns.joined(columns)
    return [sample for part in parts for sample in (part.rows() if isinstance(part, Columns) else part)]


def _are_alike(parts: list[Columns]) -> bool:
    """Whether samples that were gathered make the same columns in all parts. Columns that were given must do so."""
    if not any(part.gathered for part in parts):
        return True
    kinds = [{key: getattr(column, "dtype", list) for key, column in part.columns.items()} for part in parts]
    return all(part.gathered for part in parts) and all(kind == kinds[0] for kind in kinds)


_PLAIN = {int: np.int64, float: np.float64, bool: np.bool_, str: None, bytes: None}  # None: they stay a list


def gathered(pieces: Iterable[list[Any]]) -> Samples:
    """Samples that come piece by piece, as columns if all are flat dicts with the same keys, and under each key values
    of one plain type.

    Cutting columns into batches is many times as quick as collating each batch. It is done with each piece at once,
    while that is still in the processor's caches.
    """
    return joined([_as_columns(piece) or piece for piece in pieces])


def _as_columns(samples: list[Any]) -> Columns | None:
    if set(map(type, samples)) != {dict} or len(set(map(len, samples))) > 1:
        return None
    columns: dict[str | None, Column] = {}
    for key in samples[0]:
        try:
            values = list(map(itemgetter(key), samples))
        except KeyError:
            return None
        kinds = set(map(type, values))
        if type(key) is not str or len(kinds) > 1 or not kinds.issubset(_PLAIN):
            return None
        dtype = _PLAIN[kinds.pop()]
        try:
            columns[key] = values if dtype is None else np.fromiter(values, dtype, len(values))
        except OverflowError:  # an int of more than 64 bits
            return None
    return Columns(columns, gathered=True)


def _taken(column: Column, places: Array) -> Column:
    return list(map(column.__getitem__, places.tolist())) if isinstance(column, list) else column[places]


def _joined(columns: list[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(columns) and len({(_family(a.dtype), a.shape[1:]) for a in arrays}) == 1:
        return np.concatenate(arrays)
    lists = [column if isinstance(column, list) else column.tolist() for column in columns]
    return list(itertools.chain.from_iterable(lists))


def _family(dtype: np.dtype[Any]) -> str:
    """Dtypes of one family are joined in one array: numbers with numbers, but no times or truths with numbers."""
    return "number" if dtype.kind in "iuf" else dtype.kind


def _told(keys: Any) -> str:
    return "a bare array" if None in keys else ", ".join(sorted(map(repr, keys))) or "none"


def _kind(value: object) -> str:
    return "a number" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"
