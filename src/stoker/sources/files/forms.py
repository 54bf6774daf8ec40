"""Forms: what a column is in a batch, in words, so that it is the same in all batches of all files, or an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from stoker.errors import ChunkError
from stoker.sources.files.arrow_values import ArrowValues
from stoker.sources.files.columns import Column, Columns, name_of, told
from stoker.sources.files.ragged import Nullable, Ragged
from stoker.sources.files.texts import Texts

NOTHING = "null"  # of a list of nothing but None, which fits to any list

Form = Mapping[str, str]  # by the names of columns, and of those of structs as in "a.b"


def form_of(columns: Columns, *, shapes: bool) -> dict[str, str]:
    """Of each column; nothing of columns without rows. ``shapes``: also how large the rows are, as they are joined."""
    return dict(_forms(columns, "", shapes)) if len(columns) else {}


def _forms(columns: Columns, prefix: str, shapes: bool) -> Iterator[tuple[str, str]]:
    for key, column in columns.columns.items():
        path = prefix if key is None else prefix + str(key)
        if isinstance(column, Columns):
            yield from _forms(column, path + ".", shapes)
        else:
            yield path, _form(column, columns.kinds.get(key, "objects"), shapes)


def _form(column: Column, kind: str, shapes: bool) -> str:
    if isinstance(column, list | Texts):
        return kind if kind == NOTHING else f"a list of {kind}"
    if isinstance(column, ArrowValues):
        return f"an array of Arrow's, of {column.array().type}"
    if isinstance(column, Ragged):
        return f"a list of arrays of {name_of(column.values.dtype)}"
    assert isinstance(column, np.ndarray | Nullable)
    size = f"shape {column.shape[1:]}" if shapes else f"{column.ndim - 1} axes"
    return f"an array of {name_of(column.dtype)}" + (f" with rows of {size}" if column.ndim > 1 else "")


def check_no_nulls(columns: Columns, file: str, prefix: str = "") -> None:
    """Raises ``ChunkError`` if one has nulls among values that cannot be missing in an array."""
    for key, column in columns.columns.items():
        path = f"{prefix}{key}"
        if isinstance(column, Columns):
            check_no_nulls(column, file, path + ".")
            continue
        found = column.values if isinstance(column, Ragged) else column
        if isinstance(found, Nullable):
            nulls, dtype = int(found.nulls.sum()), found.values.dtype
            raise ChunkError(
                f"column {path!r} of {file} has {nulls:,} nulls among its {found.nulls.size:,} values, and an array of "
                f"{dtype} has no place for one: pass Chunks(..., dtypes={{{path!r}: 'float64'}}) to have NaN there, "
                f"dtypes={{{path!r}: object}} to have lists with None, or columns=[...] without it"
            )


def agreed(form: Form, file: str, other: Form, other_file: str) -> Form:
    """What both have in common, in the order of ``form``. Raises ``ChunkError`` where they differ."""
    if not form or not other:
        return form or other
    if form.keys() != other.keys():
        raise ChunkError(
            f"the columns differ: {told(form.keys())} in {file}, {told(other.keys())} in {other_file}: "
            f"pass Chunks(..., columns=[...]) with names that all files have"
        )
    return {path: _agreed(path, words, file, other[path], other_file) for path, words in form.items()}


def _agreed(path: str, words: str, file: str, others: str, other_file: str) -> str:
    if words == others:
        return words
    lists = [one for one in (words, others) if one.startswith("a list")]
    if NOTHING in (words, others) and lists:
        return lists[0]
    what = f"column {path!r}" if path else "the array"
    raise ChunkError(
        f"{what} is {words} in {file} and {others} in {other_file}: pass Chunks(..., dtypes={{{path!r}: ...}}) with "
        f"what it shall be everywhere (a dtype, str, or object for a list of Python objects), or "
        f"let read= make them alike" + ("; or pass across_chunks=False" if "shape" in words + others else "")
    )
