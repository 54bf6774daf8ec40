"""JSON lines that all have the same fields, decoded into columns without a dict for each line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from stoker.sources.files.columns import Column, Columns, Pack, Samples, as_columns, column_of, texts_of

_MOST_FIELDS = 64  # msgspec looks through all of them for one that is not where it was in the line before
_KNOWN = 64  # sets of fields that a process remembers
_EXACT: dict[Any, Any] = {int: np.int64, bool: np.bool_}  # of which msgspec takes no value of another type

Fields = tuple[tuple[str, Any], ...]


class JsonRecordDecoder:
    """Decodes block after block of a file. ``pack``: does that with strings.

    The first block tells the fields and what they hold. Those after it are decoded into structs of just these, which
    are quicker to make than dicts. Where a line does not fit, its block and all after it are decoded as any JSON is.
    """

    def __init__(self, *, pack: Pack | None = None) -> None:
        self._pack = pack
        self._decode_any: Callable[[bytes], list[Any]] = msgspec.json.Decoder().decode_lines
        self._fields: Fields | None = None
        self._is_first = True

    def decode(self, block: bytes) -> Samples:
        """Columns, or, where the lines make none, what they hold."""
        columns = self._quickly(block)
        if columns is not None:
            return columns
        samples = self._decode_any(block)
        columns = as_columns(samples, pack=self._pack)
        self._fields, self._is_first = _fields(columns) if self._is_first and columns else None, False
        return columns or samples

    def _quickly(self, block: bytes) -> Columns | None:
        if self._fields is None:
            return None
        try:
            structs = _decoder(self._fields)(block)
        except (msgspec.DecodeError, ValueError):  # a line with other fields or values; or a name that structs refuse
            return None
        columns: dict[str | None, Column] = {}
        for number, (name, kind) in enumerate(self._fields):
            column = self._column(map(attrgetter(_attribute(number)), structs), kind, len(structs))
            if column is None:
                return None
            columns[name] = column
        return Columns(columns, gathered=True)

    def _column(self, values: Iterable[Any], kind: Any, count: int) -> Column | None:
        """Values that msgspec has checked; but for an int it gives a float, if that is what was declared."""
        if kind is str:
            return texts_of(list(values), self._pack)
        if kind not in _EXACT:
            return column_of(list(values))
        try:
            return np.fromiter(values, _EXACT[kind], count)
        except OverflowError:  # an int of more than 64 bits
            return None


def _fields(columns: Columns) -> Fields | None:
    if len(columns.columns) > _MOST_FIELDS:
        return None
    return tuple((str(name), _type(column)) for name, column in columns.columns.items())


def _type(column: Column) -> Any:
    if not isinstance(column, np.ndarray):
        return str
    return {"i": int, "b": bool}.get(column.dtype.kind, int | float)


@lru_cache(_KNOWN)
def _decoder(fields: Fields) -> Callable[[bytes], list[Any]]:
    struct = msgspec.defstruct(
        "Record",
        [(_attribute(number), kind) for number, (_, kind) in enumerate(fields)],
        rename={_attribute(number): name for number, (name, _) in enumerate(fields)},
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(struct).decode_lines


def _attribute(number: int) -> str:
    """Names in JSON need not be names in Python."""
    return f"field_{number}"
