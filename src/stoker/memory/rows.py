"""Rows: lists of Python objects, however nested, as a collate function that leaves samples as they are gives.

One pickle of such a list costs a tenth of a walk over all that is in it. Between processes, objects of any class may be
among them (dates, images, the user's own), as they are pickled anyway; within one, they are handed on as they are.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from stoker.collation.columns import Objects, Pieces, Stack, Taken, TakenOfSeveral, TensorStack, Whole
from stoker.collation.tentative import Tentative
from stoker.collation.tree import container_class, is_judged, is_leaf_class

FEW = 8  # elements: fewer are as quickly walked over
_DEEPEST = 16  # lists in lists
_SCALARS = {str, bytes, int, float, complex, bool, type(None)}
_CONTAINERS = {dict, list, tuple}
_TUPLE = {tuple}
_KNOWN = _SCALARS | _CONTAINERS
# Which have a way of their own.
_COLUMNS = (np.ndarray, Stack, Taken, TakenOfSeveral, TensorStack, Whole, Pieces, Objects, Tentative)


class Dumped(NamedTuple):
    """Rows that do not leave the process: as bytes, so that the reader gets objects of its own."""

    rows: bytes

    def read(self) -> Any:
        return pickle.loads(self.rows)


def cls_unless_rows(value: Any) -> type | None:
    """The class of a container, as ``container_class`` has it, but None for rows: they are a leaf."""
    if type(value) is list and len(value) >= FEW and are_rows(value, objects_too=True):
        return None
    return container_class(value)


def cls_unless_plain_rows(value: Any) -> type | None:
    """The same, for rows of which all is built-in, or that are copied as quickly."""
    if type(value) is list and len(value) >= FEW and (copied_rows(value) is not None or are_rows(value)):
        return None
    return container_class(value)


def copied_rows(values: list[Any]) -> list[Any] | None:
    """The same rows in containers of their own, with the same objects in them. None if there are containers in them."""
    kinds = set(map(type, values))
    if kinds.isdisjoint(_CONTAINERS):
        return list(values) if _are_objects(kinds - _SCALARS, values) else None
    if len(kinds) != 1:
        return None
    within = list(_within(values))
    classes = set(map(type, within)) - _SCALARS
    if not classes.isdisjoint(_CONTAINERS) or not _are_objects(classes, within):
        return None
    if tuple in kinds:
        return list(values)
    return list(map(dict.copy if dict in kinds else list.copy, values))


def are_objects(values: list[Any]) -> bool:
    """Whether there are no containers and no arrays among them."""
    return _are_objects(set(map(type, values)) - _SCALARS, values)


def are_rows(values: list[Any], *, objects_too: bool = False) -> bool:
    """Whether all in it are built-in scalars and containers, or also objects, and no container is there twice.

    A pickle would give one container for the two, and who writes into the one would change the other.
    """
    seen: set[int] = set()
    count = 0
    level, kinds = values, set(map(type, values))
    for _ in range(_DEEPEST):
        if kinds <= _SCALARS:
            return True
        if not kinds <= _KNOWN and not (objects_too and _are_objects(kinds - _KNOWN, level)):
            return False
        if kinds.isdisjoint(_CONTAINERS):
            return True
        inner = level if kinds <= _CONTAINERS else [value for value in level if type(value) in _CONTAINERS]
        if kinds != _TUPLE:
            changeable = inner if tuple not in kinds else [value for value in inner if type(value) is not tuple]
            seen.update(map(id, changeable))
            count += len(changeable)
            if len(seen) != count:
                return False
        level = list(_within(inner))
        kinds = set(map(type, level))
    return False


def _within(containers: list[Any]) -> Iterator[Any]:
    """What is in dicts, lists and tuples, one level down."""
    kinds = set(map(type, containers))
    if kinds == {dict}:
        return chain.from_iterable(map(dict.values, containers))
    if dict not in kinds:
        return chain.from_iterable(containers)
    return chain.from_iterable(value.values() if type(value) is dict else value for value in containers)


def _are_objects(classes: set[type], values: list[Any]) -> bool:
    """Whether values of these classes are no containers, arrays or tensors to anybody, so that they are pickled."""
    torch = sys.modules.get("torch")
    apart = _COLUMNS if torch is None else (*_COLUMNS, torch.Tensor)
    if not all(map(is_judged, classes)):
        for value in {type(value): value for value in values}.values():
            container_class(value)  # which judges its class
    return all(is_leaf_class(cls) and not issubclass(cls, apart) for cls in classes)
