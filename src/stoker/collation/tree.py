"""Trees: nested dicts and other mappings, lists, tuples, namedtuples and dataclasses, with anything else as leaves.

A mapping of any class (``UserDict``, Hugging Face's ``BatchEncoding``) is a container if ``cls(dict)`` makes it again
with the same keys and values. A dict of a class that does not (``defaultdict``) becomes a plain dict; another mapping
that does not (a group of an HDF5 file) is a leaf, and stays whole.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from stoker.collation.tentative import Tentative

_REMEMBERED = 1024  # classes that were looked at; a program may make new ones for ever


class Extra(Enum):
    """The key under which a mapping's own attributes stand in its node, after those of its items."""

    ATTRIBUTES = "__dict__"


class Attributes:
    """What a mapping has beside its items (``BatchEncoding.encodings``): a leaf, which travels as it is."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values


class Node(NamedTuple):
    """The shape of one container: its class, its keys in order, and what stands under each (``None``: a leaf)."""

    cls: type
    keys: tuple[Any, ...]
    children: tuple[Node | None, ...]


Shape = Node | None  # the shape of a whole tree; a bare leaf is None


class Branch:
    """A container of some class that is yet to be made: its children are still columns, which a class might refuse."""

    __slots__ = ("children", "cls", "keys")

    def __init__(self, cls: type, keys: tuple[Any, ...], children: list[Any]) -> None:
        self.cls, self.keys, self.children = cls, keys, children


class Assembled(ABC):
    """A class of nodes for what travels in another form: it puts the original together of that. Nothing is of it."""

    @classmethod
    @abstractmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        """What was there, of the children under these keys."""


_BUILTIN: dict[type, type] = {dict: dict, list: list, tuple: tuple, OrderedDict: OrderedDict}
_JUDGED: dict[type, type | None] = {**_BUILTIN, Counter: dict}  # a Counter of arrays cannot even be printed
_CLASSES = dict(_JUDGED)  # what a value of a class is rebuilt as; None: it is a leaf


def is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_mapping(cls: type | None) -> bool:
    return cls is dict or (cls is not None and issubclass(cls, Mapping))


def container_class(value: Any) -> type | None:
    """The class that a container is rebuilt as, or None for a leaf."""
    try:
        return _CLASSES[type(value)]
    except KeyError:
        return _judged(value)


def is_judged(cls: type) -> bool:
    """Whether ``container_class`` says the same of all values of a class."""
    return cls in _CLASSES


def is_leaf_class(cls: type) -> bool:
    """Whether all values of a class are known to be leaves."""
    return _CLASSES.get(cls, cls) is None


def _judged(value: Any) -> type | None:
    """The same, of a class that was not seen before."""
    cls = type(value)
    if cls is Branch:
        return value.cls  # type: ignore[no-any-return]
    found: type | None = None
    if issubclass(cls, Mapping):
        is_empty, found = _judged_mapping(value)
        if is_empty:
            return found  # the next one of its class tells more
    elif is_namedtuple(cls) or dataclasses.is_dataclass(cls):
        found = cls
    if len(_CLASSES) >= _REMEMBERED:
        for other in [*_CLASSES][len(_JUDGED) :]:  # never those: another thread may just be looking one up
            _CLASSES.pop(other, None)
    _CLASSES[cls] = found
    return found


def _judged_mapping(value: Any) -> tuple[bool, type | None]:
    """Whether it has no items, and what it is rebuilt as."""
    cls, otherwise = type(value), dict if isinstance(value, dict) else None
    try:
        keys, children = items(value)
        is_again = _made_again(cls, keys, children) is not None and _takes_values(cls, keys, children)
    except Exception:  # whatever a class of the user's may raise
        return False, otherwise
    return not keys, cls if is_again else otherwise


def _takes_values(cls: type, keys: tuple[Any, ...], children: tuple[Any, ...]) -> bool:
    """Whether the constructor looks at values at all: a vocabulary made of words would number them by itself."""
    others = [child + 1_000_003 if isinstance(child, int) else child for child in children]
    try:
        cls(dict(zip(keys, others, strict=True)))
    except Exception:  # it refuses some
        return True
    return _made_again(cls, keys, others) is not None


def _made_again(cls: type, keys: tuple[Any, ...], children: Any) -> Any:
    """A mapping of that class, or None where its constructor refuses, or makes other items of these."""
    try:
        made: Any = cls(dict(zip(keys, children, strict=True)))
        own_keys, own_children = items(made)
        is_same = type(made) is cls and own_keys == keys and all(map(_is_kept, own_children, children))
    except Exception:  # whatever a class of the user's may raise
        return None
    return made if is_same else None


def _is_kept(own: Any, given: Any) -> bool:
    """Whether a class has kept what it was given. It may copy containers, as classes for ``config.a.b`` do."""
    return own is given or (container_class(given) is not None and container_class(own) is container_class(given))


def exact_class(value: Any) -> type | None:
    """The same, but only of those that come back just as they were: no other dicts, no attributes beside the fields."""
    cls = container_class(value)
    if cls is None or cls in _BUILTIN:
        return cls if cls is type(value) else None
    if is_mapping(cls) or (dataclasses.is_dataclass(cls) and not _is_all_fields(value)):
        return None
    return cls


def _is_all_fields(value: Any) -> bool:
    names = {field.name for field in dataclasses.fields(value)}
    return names.issuperset(getattr(value, "__dict__", ()))


def items(container: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The keys and the children of a container, in order."""
    cls = type(container)
    if isinstance(container, dict):
        return tuple(container), tuple(container.values())
    if is_namedtuple(cls):
        return container._fields, tuple(container)
    if isinstance(container, (list, tuple)):
        return tuple(range(len(container))), tuple(container)
    if cls is Branch:
        return container.keys, tuple(container.children)
    if issubclass(cls, Mapping):
        return tuple(container), tuple(container.values())
    names = tuple(field.name for field in dataclasses.fields(container))
    return names, tuple(getattr(container, name) for name in names)


def _all_items(container: Any, cls: type) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The same, and as a last one what attributes a mapping has beside its items."""
    keys, children = items(container)
    if cls in _BUILTIN or type(container) is not cls or not is_mapping(cls):
        return keys, children
    attributes = _attributes(container, keys, children)
    return ((*keys, Extra.ATTRIBUTES), (*children, Attributes(attributes))) if attributes else (keys, children)


def _attributes(mapping: Any, keys: tuple[Any, ...], children: tuple[Any, ...]) -> dict[str, Any]:
    """Those that a new mapping with the same items would not have; so not those that hold the items themselves."""
    own = getattr(mapping, "__dict__", None)
    if not own or own is mapping:
        return {}
    anew = getattr(_made_again(type(mapping), keys, children), "__dict__", {})
    return {
        name: value
        for name, value in own.items()
        if name not in keys and not (name in anew and _held(value) == _held(anew[name]))
    }


def _held(value: Any) -> set[int]:
    """The objects that an attribute holds: in a dict, a list, or a list of dicts."""
    if isinstance(value, dict):
        return set(map(id, value.values()))
    if isinstance(value, list):
        return {held for one in value for held in (_held(one) if isinstance(one, dict) else (id(one),))}
    return {id(value)}


def build(cls: type, keys: tuple[Any, ...], children: list[Any]) -> Any:
    """A container of that class, made without its ``__init__`` or ``__new__``: a batch is not a sample."""
    if cls in _BUILTIN:
        return cls(children) if cls is list or cls is tuple else cls(zip(keys, children, strict=True))
    if is_namedtuple(cls):
        return tuple.__new__(cls, children)
    if issubclass(cls, Assembled):
        return cls.assemble(keys, children)
    if issubclass(cls, Mapping):
        return _built_mapping(cls, keys, children)
    made = object.__new__(cls)
    for key, child in zip(keys, children, strict=True):
        object.__setattr__(made, key, child)
    return made


def _built_mapping(cls: type, keys: tuple[Any, ...], children: list[Any]) -> Any:
    """A class that took the samples' values and refuses the batch's gives way to a plain dict, which has them all."""
    attributes: dict[str, Any] = {}
    if keys and keys[-1] is Extra.ATTRIBUTES:
        keys, children, attributes = keys[:-1], children[:-1], children[-1].values
    made = _made_again(cls, keys, children)
    if made is None:
        return dict(zip(keys, children, strict=True))
    if attributes:
        vars(made).update(attributes)
    return made


ClassOf = Callable[[Any], "type | Branch | None"]  # None: a leaf. A branch: what stands for it.


def flatten(tree: Any, cls_of: ClassOf = container_class) -> tuple[list[Any], Shape]:
    """The leaves in order, and the shape to put them back with ``unflatten``. What is a leaf, ``cls_of`` says."""
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, leaves, cls_of)


def _flatten_into(tree: Any, leaves: list[Any], cls_of: ClassOf) -> Shape:
    if type(tree) is Tentative:
        tree = tree.tree
    cls = cls_of(tree)
    if cls is None:
        leaves.append(tree)
        return None
    if isinstance(cls, Branch):
        tree, cls = cls, cls.cls
    keys, children = _all_items(tree, cls)
    return Node(cls, keys, tuple([_flatten_into(child, leaves, cls_of) for child in children]))


def unflatten(shape: Shape, leaves: Iterator[Any]) -> Any:
    if shape is None:
        return next(leaves)
    cls, keys, children = shape
    return build(cls, keys, [next(leaves) if child is None else unflatten(child, leaves) for child in children])


def map_leaves(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``fn(leaf)`` in place of each leaf."""
    cls = container_class(tree)
    if cls is None:
        return fn(tree)
    keys, children = _all_items(tree, cls)
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
    if key is Extra.ATTRIBUTES:
        return f".{key.value}"
    if cls in _BUILTIN or (is_mapping(cls) and not is_namedtuple(cls)):
        return f"[{key!r}]"
    return f".{key}"
