"""Samples as columns: a column for each key, or one array whose rows are the samples.

| a column is | for | in a batch |
|---|---|---|
| an array | numbers, times, arrays of one shape | an array |
| a list | strings and other objects | a list |
| ``Texts``, ``PackedTexts`` | strings of Arrow's, and strings that have arrived | a list |
| ``Ragged`` | arrays of different lengths | a list of arrays |
| ``Columns`` | dicts with the same keys | a dict of these |
| ``ArrowValues`` | all else, in batches for Arrow | an array of Arrow's |
| ``Nullable`` | integers and booleans of which some are missing | an error: see ``forms.py`` |
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Union

import numpy as np

from stoker.errors import ChunkError
from stoker.sources.files.arrow_values import ArrowValues
from stoker.sources.files.ragged import Array, Nullable, Ragged, joined_values
from stoker.sources.files.texts import PackedTexts, Texts

Column = Union[Array, list[Any], Texts, PackedTexts, Ragged, Nullable, ArrowValues, "Columns"]


Pack = Callable[[list[str]], Texts | PackedTexts | None]  # how strings become bytes; None where they cannot


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of equal length. The only key of a bare array is None.

    Attributes:
        columns: By their keys.
        gathered: Out of samples that were dicts of plain values, to which ``rows`` leads back.
        kinds: What the lists among the columns hold, where that is known.
    """

    columns: Mapping[str | None, Column]
    gathered: bool = False
    kinds: Mapping[str | None, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, column in self.columns.items():
            if (isinstance(column, np.ndarray) and column.ndim == 0) or not isinstance(column, _COLUMNS):
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
        rows = np.asarray(indices, np.intp)
        return self._with({key: _taken(column, rows) for key, column in self.columns.items()})

    def rows(self) -> list[Any]:
        """The samples: a dict each, or a row of the bare array."""
        if None in self.columns:
            return rows_of(self.columns[None])
        keys, columns = tuple(self.columns), [rows_of(column, self.gathered) for column in self.columns.values()]
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Several with the same keys, one behind the other."""
        filled = [part for part in parts if len(part)] or list(parts[:1])
        keys = filled[0].columns.keys()
        for part in filled:
            if part.columns.keys() != keys:
                others = told(part.columns.keys())
                raise ChunkError(f"the columns differ: {told(keys)} in one file, {others} in another")
        return filled[0]._with({key: _joined([part.columns[key] for part in filled]) for key in keys})

    def _with(self, columns: Mapping[str | None, Column]) -> Columns:
        return Columns(columns, self.gathered, self.kinds)


Samples = Columns | list[Any]
_COLUMNS = (np.ndarray, list, Texts, PackedTexts, Ragged, Nullable, ArrowValues, Columns)


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


_NUMBERS = {int: np.int64, float: np.float64, bool: np.bool_}
_PLAIN = {*_NUMBERS, str, bytes}


def gathered(pieces: Iterable[Samples], *, pack: Pack | None = None) -> Samples:
    """Samples that come piece by piece, as columns if all are flat dicts with the same keys, and under each key values
    of one plain type. A piece may be columns already. ``pack``: does that with strings.

    Cutting columns into batches is many times as quick as collating each batch. It is done with each piece at once,
    while that is still in the processor's caches.
    """
    return joined([piece if isinstance(piece, Columns) else as_columns(piece, pack=pack) or piece for piece in pieces])


def as_columns(samples: list[Any], *, pack: Pack | None = None) -> Columns | None:
    """One piece of them; None where they make no columns."""
    if set(map(type, samples)) != {dict} or len(set(map(len, samples))) > 1:
        return None
    columns: dict[str | None, Column] = {}
    for key in samples[0]:
        try:
            column = column_of(list(map(itemgetter(key), samples)), pack=pack)
        except KeyError:
            return None
        if type(key) is not str or column is None:
            return None
        columns[key] = column
    return Columns(columns, gathered=True)


def column_of(values: list[Any], *, pack: Pack | None = None) -> Column | None:
    """Values of one plain type, as a column; None if they are of several, or of any other."""
    kinds = set(map(type, values))
    if len(kinds) > 1 or not kinds <= _PLAIN:
        return None
    kind = kinds.pop()
    if kind not in _NUMBERS:
        return texts_of(values, pack) if kind is str else values
    try:
        return np.fromiter(values, _NUMBERS[kind], len(values))
    except OverflowError:  # an int of more than 64 bits
        return None


def texts_of(values: list[str], pack: Pack | None) -> Column:
    """Packed up, if that is wanted and can be."""
    return values if pack is None else pack(values) or values


def _taken(column: Column, rows: Array) -> Column:
    if isinstance(column, list):
        return list(map(column.__getitem__, rows.tolist()))
    return column[rows] if isinstance(column, np.ndarray) else column.take(rows)


def rows_of(column: Column, plain: bool = False) -> list[Any]:
    """Its values; ``plain``: Python's own numbers."""
    if isinstance(column, np.ndarray):
        return column.tolist() if plain else list(column)
    return column if isinstance(column, list) else column.rows()


def _joined(columns: list[Column]) -> Column:
    """In a list, where they fit in no other form: that is of use to those who want rows only."""
    if len(columns) == 1:
        return columns[0]
    kinds: tuple[Any, ...] = (Columns, Texts, PackedTexts, ArrowValues)
    for kind in kinds:
        if all(isinstance(column, kind) for column in columns):
            return kind.joined(columns)  # type: ignore[no-any-return]
    ragged = [column for column in columns if isinstance(column, Ragged)]
    if len(ragged) == len(columns) and _fit([part.values for part in ragged]):
        return Ragged.joined(ragged)
    arrays = [column for column in columns if isinstance(column, np.ndarray | Nullable)]
    if len(arrays) == len(columns) and _fit(arrays):
        return joined_values(arrays)
    return list(itertools.chain.from_iterable(map(rows_of, columns)))


def _fit(arrays: list[Any]) -> bool:
    """Whether they can be joined to one array, in which no value is changed."""
    if not all(isinstance(array, np.ndarray | Nullable) for array in arrays):
        return False
    dtype, shape = arrays[0].dtype, arrays[0].shape[1:]
    are_same = all(array.dtype == dtype or name_of(array.dtype) == name_of(dtype) for array in arrays)
    return are_same and all(array.shape[1:] == shape for array in arrays)


def name_of(dtype: np.dtype[Any]) -> str:
    """What arrays that are joined have in common: fixed-width strings may be of any width, numbers in any order of
    bytes."""
    return {"U": "str", "S": "bytes"}.get(dtype.kind) or str(dtype.newbyteorder("="))


def told(keys: Any) -> str:
    """Names, for messages."""
    return "a bare array" if None in keys else ", ".join(sorted(map(repr, keys))) or "none"


def _kind(value: object) -> str:
    return "a number" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"
