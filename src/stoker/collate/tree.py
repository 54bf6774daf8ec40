"""Trees: nested dicts, lists, tuples, namedtuples and dataclasses, with anything else as leaves."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Node(NamedTuple):
    """The shape of one container: its class, its keys in order, and what stands under each (``None``: a leaf)."""

    cls: type
    keys: tuple[Any, ...]
    children: tuple[Node | None, ...]


Shape = Node | None  # the shape of a whole tree; a bare leaf is None


def is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def container_class(value: Any) -> type | None:
    """The class that a container is rebuilt as, or None for a leaf. Other dict subclasses become plain dicts."""
    cls = type(value)
    if cls is dict or cls is list or cls is tuple:
        return cls
    if isinstance(value, dict):
        return OrderedDict if cls is OrderedDict else dict
    if is_namedtuple(cls):
        return cls
    if dataclasses.is_dataclass(cls):
        return cls
    return None


def exact_class(value: Any) -> type | None:
    """The same, but only of those that come back just as they were: no other dicts, no attributes beside the fields."""
    cls = container_class(value)
    if cls is not type(value) or (cls is not None and dataclasses.is_dataclass(cls) and not _is_all_fields(value)):
        return None
    return cls


def _is_all_fields(value: Any) -> bool:
    names = {field.name for field in dataclasses.fields(value)}
    return names.issuperset(getattr(value, "__dict__", ()))


def items(container: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The keys and the children of a container, in order."""
    if isinstance(container, dict):
        return tuple(container), tuple(container.values())
    if is_namedtuple(type(container)):
        return container._fields, tuple(container)
    if isinstance(container, (list, tuple)):
        return tuple(range(len(container))), tuple(container)
    names = tuple(field.name for field in dataclasses.fields(container))
    return names, tuple(getattr(container, name) for name in names)


def build(cls: type, keys: tuple[Any, ...], children: list[Any]) -> Any:
    """A container of that class. Dataclasses are filled without ``__init__``: a batch is not a sample."""
    if issubclass(cls, dict):
        return cls(zip(keys, children, strict=True))
    if is_namedtuple(cls):
        return cls(*children)
    if issubclass(cls, (list, tuple)):
        return cls(children)
    made = object.__new__(cls)
    for key, child in zip(keys, children, strict=True):
        object.__setattr__(made, key, child)
    return made


def flatten(tree: Any, cls_of: Callable[[Any], type | None] = container_class) -> tuple[list[Any], Shape]:
    """The leaves in order, and the shape to put them back with ``unflatten``. What is a leaf, ``cls_of`` says."""
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, cls_of)


def _flatten_into(tree: Any, leaves: list[Any], cls_of: Callable[[Any], type | None]) -> Shape:
    cls = cls_of(tree)
    if cls is None:
        leaves.append(tree)
        return None
    keys, children = items(tree)
    return Node(cls, keys, tuple([_flatten_into(child, leaves, cls_of) for child in children]))


def unflatten(shape: Shape, leaves: Iterator[Any]) -> Any:
    if shape is None:
        return next(leaves)
    return build(shape.cls, shape.keys, [unflatten(child, leaves) for child in shape.children])


def map_leaves(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``fn(leaf)`` in place of each leaf."""
    cls = container_class(tree)
    if cls is None:
        return fn(tree)
    keys, children = items(tree)
    return build(cls, keys, [map_leaves(fn, child) for child in children])


def paths(shape: Shape, prefix: str = "batch") -> Iterator[str]:
    """How one would write each leaf in Python: ``batch['image'][0]``."""
    if shape is None:
        yield prefix
        return
    for key, child in zip(shape.keys, shape.children, strict=True):
        yield from paths(child, prefix + step(shape.cls, key))


def step(cls: type, key: Any) -> str:
    """One step of a path into a container of that class."""
    if issubclass(cls, dict) or (issubclass(cls, (list, tuple)) and not is_namedtuple(cls)):
        return f"[{key!r}]"
    return f".{key}"
