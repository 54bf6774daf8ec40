"""Samples that are all alike, as most are: taken apart a column at a time, and not sample by sample.

Each function makes one complete check that costs a few calls for the whole batch, and gives None where it fails: then
the general way is taken, which finds out what is the matter and says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from stoker.collation.tree import is_namedtuple

_FEW = 4  # keys: from here on one walk over all of them is quicker than one for each
_NUMPY = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64,
)  # fmt: skip
# What numpy itself would make of numbers that are all of that class. An int may need more than 64 bits.
_DTYPES: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    **{kind: np.dtype(kind) for kind in _NUMPY},
}


def all_are(cls: type, values: list[Any]) -> bool:
    """Whether all are of just that class."""
    return list(map(type, values)).count(cls) == len(values)  # in two thirds of the time of a set


def columns_of(values: list[Any]) -> tuple[tuple[Any, ...], list[list[Any]]] | None:
    """The keys and the columns of containers of one class with the same keys."""
    cls = type(values[0])
    if not all_are(cls, values):
        return None
    if cls is dict:
        return _of_dicts(values)
    if cls is tuple or cls is list or is_namedtuple(cls):
        return _of_sequences(values)
    if dataclasses.is_dataclass(cls) and not issubclass(cls, (list, tuple, Mapping)):
        names = tuple(field.name for field in dataclasses.fields(cls))
        return names, [list(map(attrgetter(name), values)) for name in names]
    return None


def _of_dicts(values: list[Any]) -> tuple[tuple[Any, ...], list[list[Any]]] | None:
    keys = tuple(values[0])
    if set(map(len, values)) != {len(keys)}:
        return None
    try:  # as many keys, and all of these: the same keys
        if len(keys) > _FEW:
            return keys, list(map(list, zip(*map(itemgetter(*keys), values), strict=True)))
        return keys, [list(map(itemgetter(key), values)) for key in keys]
    except KeyError:
        return None


def _of_sequences(values: list[Any]) -> tuple[tuple[Any, ...], list[list[Any]]] | None:
    first = values[0]
    keys = first._fields if hasattr(first, "_fields") else tuple(range(len(first)))
    try:
        columns = list(map(list, zip(*values, strict=True)))
    except ValueError:  # they are not all as long
        return None
    return (keys, columns) if len(columns) == len(keys) else None


def array_of(values: list[Any]) -> np.ndarray[Any, Any] | None:
    """The array of numbers that are all of one class."""
    cls = type(values[0])
    dtype = _DTYPES.get(cls)
    if dtype is None or not all_are(cls, values):
        return None
    try:
        return np.fromiter(values, dtype, len(values))
    except OverflowError:
        return None
