"""The rows of a group of files as one table: a worker writes it in a few large arrays, the consumer cuts batches of it.

It is much quicker to write a few large arrays than many small ones, and to cut those. A table is a dict of columns, or
one bare array; columns that are no arrays (see ``files/columns.py``) travel as the arrays they are made of.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from stoker.collation import Objects
from stoker.collation.columns import Taken, Whole
from stoker.sources.files.arrow_values import ArrowValues
from stoker.sources.files.columns import Columns
from stoker.sources.files.forms import Form
from stoker.sources.files.ragged import Array, Nullable, Ragged
from stoker.sources.files.texts import PackedTexts, Texts, Unpacker

_OPENED = Texts | PackedTexts | Ragged  # which are lists in a batch


@dataclass(frozen=True)
class Batches:
    """Batches that are there only when they are asked for: so many, and ``make`` makes the nth of them."""

    make: Callable[[int], Any]
    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, range(self.count))


NONE = Batches(range(0).__getitem__, 0)


def batches_of(table: Any, bounds: Iterable[int]) -> Batches:
    """Those between the bounds, which are rows."""
    spans = list(itertools.starmap(slice, itertools.pairwise(bounds)))
    if not isinstance(table, dict) or any(isinstance(column, dict) for column in table.values()):
        return Batches(lambda nth: _cut(table, spans[nth]), len(spans))
    columns: list[tuple[Any, Any, bool]] = [
        (key, Unpacker(one) if isinstance(one, PackedTexts) else one, isinstance(one, _OPENED))
        for key, one in table.items()
    ]

    def make(nth: int) -> dict[Any, Any]:  # the same for the ordinary table, as quickly as can be
        rows = spans[nth]
        return {key: column.rows(rows.start, rows.stop) if opens else column[rows] for key, column, opens in columns}

    return Batches(make, len(spans))


Hold = Callable[[list[Any]], Any]  # how a list of objects is to travel


def as_texts(values: list[Any]) -> Texts | Objects:
    """Strings for Arrow."""
    texts = Texts.of(values) if set(map(type, values)) == {str} else None
    return Objects(values) if texts is None else texts


def packed(values: list[Any], bounds: Iterable[int]) -> PackedTexts | Objects:
    """Strings for batches with these bounds."""
    if set(map(type, values)) != {str}:
        return Objects(values)
    texts = PackedTexts.of(values, sorted({0, *bounds, len(values)}))
    return Objects(values) if texts is None else texts


def table_of(samples: Columns, rows: slice | Array, hold: Hold = Objects) -> Any:
    """Rows of them, to be written into a slot."""
    table = {key: _column(column, rows, hold) for key, column in samples.columns.items()}
    return table.get(None, table)  # the rows of a bare array


def _column(column: Any, rows: slice | Array, hold: Hold) -> Any:
    if isinstance(column, Columns):
        return table_of(column, rows, hold)
    if isinstance(column, Nullable):
        return Nullable(_column(column.values, rows, hold), _column(column.nulls, rows, hold))
    if isinstance(column, list):
        return hold(column[rows] if isinstance(rows, slice) else list(map(column.__getitem__, rows.tolist())))
    if isinstance(column, PackedTexts):
        is_whole = isinstance(rows, slice) and rows == slice(0, len(column))
        return column if is_whole else hold(_strings(column, rows))
    if isinstance(rows, slice):
        return _span(column, rows)
    if isinstance(column, Texts | ArrowValues):
        return column.take(rows)
    if isinstance(column, Ragged):
        within, offsets, nulls = column.value_indices(rows)
        return Ragged(_column(column.values, within, hold), offsets, nulls)
    return Taken(column, rows)


def _strings(texts: PackedTexts, rows: slice | Array) -> list[Any]:
    return texts.rows(rows.start, rows.stop) if isinstance(rows, slice) else texts.take(rows)


def _span(column: Any, rows: slice) -> Any:
    if isinstance(column, Texts | ArrowValues):
        return column.part(rows.start, rows.stop)
    if isinstance(column, Ragged):
        part = column.part(rows.start, rows.stop)
        return Ragged(_column(part.values, slice(0, len(part.values)), Objects), part.offsets, part.nulls)
    return Whole(column[rows])


def columns_of(table: Any, gathered: bool = False) -> Columns:
    """A table that has arrived, as columns again."""
    if not isinstance(table, dict):
        return Columns({None: table})
    return Columns({key: columns_of(one) if isinstance(one, dict) else one for key, one in table.items()}, gathered)


def in_order_of(table: Any, form: Form, prefix: str = "") -> Any:
    """With the keys in the order of that form: files may have their columns in another one."""
    if not isinstance(table, dict):
        return table
    names = [path.removeprefix(prefix) for path in form if path.startswith(prefix)]
    keys = dict.fromkeys(name if name in table else name.partition(".")[0] for name in names)
    return {key: in_order_of(table[key], form, f"{prefix}{key}.") for key in keys if key in table}


def _cut(table: Any, rows: slice) -> Any:
    """Some rows, as a batch has them."""
    if isinstance(table, dict):
        return {key: _cut(column, rows) for key, column in table.items()}
    return table.rows(rows.start, rows.stop) if isinstance(table, _OPENED) else table[rows]


def opened(batch: Any) -> Any:
    """All rows, as a batch has them."""
    if type(batch) is dict:
        return {key: opened(column) for key, column in batch.items()}
    return batch.rows() if isinstance(batch, _OPENED) else batch
