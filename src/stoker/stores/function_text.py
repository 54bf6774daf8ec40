"""What a function is, as text: its name, and what it was made of where the name does not lead to it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import xxhash

MADE = "<locals>"  # in the name of what a function has made


def function_text(function: Any, tell: Callable[[Any], str]) -> str | None:
    """By name; lambdas and what functions make, under whatever name, also by code and what they enclose.

    None: it is no function.
    """
    if not callable(function) or not isinstance(getattr(function, "__qualname__", None), str):
        return None
    name = f"{_module_of(function)}:{function.__qualname__}"
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        is_known = isinstance(owner, type) and MADE not in owner.__qualname__
        return name if is_known else f"{name} of {tell(owner)}"
    if owner is not None or _leads_to(function):
        return name
    if isinstance(function, FunctionType):
        if "<" not in function.__qualname__ and not function.__closure__:
            return name
        known = [*(function.__closure__ or ()), function.__defaults__, function.__kwdefaults__]
        told = [_contents(one, tell) if isinstance(one, CellType) else tell(one) for one in known if one]
        return f"{name}#{digest(*_code(function.__code__, tell))}({', '.join(told)})"
    within = getattr(function, "__wrapped__", None)
    if within is None:
        return None
    inner = tell(within)
    return name if inner == name else f"{name} around {inner}"


def _contents(cell: CellType, tell: Callable[[Any], str]) -> str:
    try:
        return tell(cell.cell_contents)
    except ValueError:  # not yet assigned
        return "nothing"


def _code(code: CodeType, tell: Callable[[Any], str]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        yield from _code(constant, tell) if isinstance(constant, CodeType) else (tell(constant),)


def digest(*texts: str) -> str:
    """A checksum of 128 bits over all of them."""
    total = xxhash.xxh3_128()
    for text in texts:
        total.update(text.encode("utf-8", "surrogatepass"))
        total.update(b"\0")
    return total.hexdigest()


def _leads_to(thing: Any) -> bool:
    """Whether module and name lead to that very class or function."""
    found: Any = sys.modules.get(_module_of(thing))
    try:
        return functools.reduce(getattr, thing.__qualname__.split("."), found) is thing
    except AttributeError:
        return False


def _module_of(thing: Any) -> str:
    """Where a class or function is from; methods of built-in types have it from their type."""
    found = getattr(thing, "__module__", None) or getattr(getattr(thing, "__objclass__", None), "__module__", None)
    return found if isinstance(found, str) else "builtins"
