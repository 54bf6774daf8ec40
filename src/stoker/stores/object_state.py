"""What an object keeps: the arguments of its constructor, or all that ``pickle`` would keep of it."""

from __future__ import annotations

import copyreg
import gc
import inspect
import io
import itertools
import random
import sys
from collections.abc import Iterator, Mapping
from types import GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

import numpy as np

UNKNOWN = "(?)"  # behind the class of what cannot be told: files, locks, connections
_PICKLE_PROTOCOL = 5  # which gives large memory as it is
# What Python itself puts into a class, some of it in one version only (``__static_attributes__``).
_OF_PYTHON = frozenset({"__module__", "__qualname__", "__name__", "__doc__", "__dict__", "__weakref__", "__slots__"})
_OF_PYTHON |= {"__firstlineno__", "__static_attributes__", "__annotations__", "__annotate__", "__annotations_cache__"}
_OF_PYTHON |= {
    "__annotate_func__",
    "__abstractmethods__",
    "_abc_impl",
    "__parameters__",
    "__orig_bases__",
    "__type_params__",
}


class State(NamedTuple):
    """What pickle would keep of an object.

    Attributes:
        maker, args: What makes it again; None: just its class.
        kept: Attributes.
        parts: Whatever else: a state of its own form, its items.
    """

    maker: Any
    args: tuple[Any, ...]
    kept: Mapping[str, Any]
    parts: list[Any]


def parameters(function: Any) -> list[str] | None:
    """The names of what a function or class takes; None if it does not tell."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # made in C
        return None


def arguments_of(thing: Any) -> tuple[dict[str, Any], bool]:
    """The arguments of its constructor that an object keeps under their names, and whether these are all."""
    names = parameters(type(thing))
    found = {}
    for name in names or ():
        for attribute in (name, f"_{name}"):
            try:
                value = inspect.getattr_static(thing, attribute)
                if attribute in getattr(thing, "__dict__", {}) or inspect.isdatadescriptor(value):
                    found[name] = getattr(thing, attribute)
                    break
            except Exception:  # it is not there, or a property of the user's fails
                continue
    return found, names is not None and len(found) == len(names)


def reduced(thing: Any) -> State | None:
    """What pickle would keep of it; None if it cannot be pickled."""
    try:
        reducer = copyreg.dispatch_table.get(type(thing))
        found = thing.__reduce_ex__(_PICKLE_PROTOCOL) if reducer is None else reducer(thing)
    except RecursionError:
        raise
    except Exception:
        return _of_iterator(thing)
    if isinstance(found, str):  # the name of a global
        return State(None, (), {}, [found])
    return _state(*found) if isinstance(found, tuple) else None


def _of_iterator(thing: Any) -> State | None:
    """What an iterator of ``itertools`` holds. From Python 3.14 on, they cannot be pickled."""
    if type(thing).__module__ != "itertools":
        return None
    return State(None, (), {}, [repr(thing)] if isinstance(thing, itertools.count) else gc.get_referents(thing))


def _state(maker: Any, args: Any, state: Any = None, items: Any = None, pairs: Any = None, setter: Any = None) -> State:
    kept: dict[str, Any] = {}
    parts: list[Any] = []
    if getattr(maker, "__name__", "") in ("__newobj__", "__newobj_ex__") and maker.__module__ == "copyreg":
        maker, args, parts = None, (), list(args[1:])  # the first one is its class
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):  # the second: of its slots
        if isinstance(part, dict) and all(isinstance(name, str) for name in part):
            kept |= part
        elif part is not None:
            parts.append(part)
    parts += [list(one) for one in (items, pairs) if one is not None]
    return State(maker, args, kept, parts)


def moves_on(value: Any) -> bool:
    """Whether it is a file or makes random numbers: what it is changes with each use."""
    if isinstance(value, io.IOBase):
        return not isinstance(value, io.BytesIO | io.StringIO)
    if isinstance(value, random.Random | np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Generator)


def is_made_in_c(cls: type) -> bool:
    return any(isinstance(value, MethodDescriptorType | WrapperDescriptorType) for value in vars(cls).values())


def class_contents(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class defines, but for what Python puts there."""
    for name, value in sorted(vars(cls).items()):
        if name not in _OF_PYTHON and not isinstance(value, GetSetDescriptorType | MemberDescriptorType):
            yield name, value.__func__ if isinstance(value, staticmethod | classmethod) else value
