"""Where in a dataset something lies, in the user's own words: ``Photos.files[3].handle``, the global ``db``."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_MOST = 100_000  # objects that are looked at


def path_to(wanted: Any, root: Any, name: str) -> str | None:
    """The shortest way from ``root``, which is called ``name``, or None where there is none that we can follow."""
    left: deque[tuple[Any, str]] = deque([(root, name)])
    seen: dict[int, Any] = {}  # kept, so that no other object gets its address
    while left and len(seen) < _MOST:
        thing, path = left.popleft()
        if thing is wanted:
            return path
        if id(thing) not in seen:
            seen[id(thing)] = thing
            left.extend(_within(thing, path))
    return None


def _within(thing: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(thing, ModuleType):
        return  # it is imported, not sent
    if isinstance(thing, Mapping):
        yield from ((value, f"{path}[{key!r}]") for key, value in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((value, f"{path}[{nth}]") for nth, value in enumerate(thing))
    elif isinstance(thing, MethodType):
        yield thing.__self__, path.rpartition(".")[0] or path
        yield thing.__func__, path
    elif isinstance(thing, FunctionType):
        yield from _used_by(thing)
    elif isinstance(thing, type):
        yield from ((value, f"{thing.__qualname__}.{key}") for key, value in vars(thing).items())
    elif isinstance(thing, functools.partial):
        yield from ((thing.func, path), (thing.args, f"{path}.args"), (thing.keywords, f"{path}.keywords"))
    else:
        with contextlib.suppress(Exception):  # some have no attributes, and some answer to every name
            yield from ((value, f"{path}.{key}") for key, value in vars(thing).items())
        yield type(thing), type(thing).__qualname__


def _used_by(function: FunctionType) -> Iterator[tuple[Any, str]]:
    name = function.__qualname__
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield cell.cell_contents, f"the variable {variable} of {name}"
        except ValueError:  # it is still empty
            continue
    for variable in _names(function.__code__):
        if variable in function.__globals__:
            yield function.__globals__[variable], f"the global {variable}, which {name} uses"
    yield from ((value, f"a default argument of {name}") for value in function.__defaults__ or ())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
