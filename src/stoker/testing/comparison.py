"""Comparing what loaders deliver: by container, order, type, dtype, shape and value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHOWN = 200  # characters of a value in a message


def assert_same(got: Any, expected: Any) -> None:
    """Asserts that two batches, or lists of batches, are the same tree: containers, order, types and values.

    Arrays may be of numpy or of any framework; NaN equals NaN.

    Raises:
        AssertionError: With the path to the first leaf that differs, and its first differing values.

    Example:
        >>> import numpy as np
        >>> from stoker.testing import assert_same
        >>> assert_same([{"x": np.arange(3)}], [{"x": np.arange(3)}])
        >>> assert_same([{"x": np.array([0, 1, 7])}], [{"x": np.arange(3)}])
        Traceback (most recent call last):
        AssertionError: got[0]['x'][2] is 7, not 2; 1 of 3 values differ
    """
    found = difference(got, expected, "got")
    if found is not None:
        raise AssertionError(found)


def difference(got: Any, expected: Any, path: str = "batch") -> str | None:
    """The first difference, in words; None if there is none. ``path``: how one would write ``got`` in Python."""
    if type(got) is not type(expected):
        return f"{path} is {_shown(got)}, a {_kind(got)}, not {_shown(expected)}, a {_kind(expected)}"
    for is_such, compared in _KINDS:
        if is_such(expected):
            return compared(got, expected, path)
    return _of_objects(got, expected, path)


def _of_dicts(got: Any, expected: Any, path: str) -> str | None:
    if list(got) != list(expected):
        return f"{path} has the keys {list(got)}, not {list(expected)}"
    return _first(difference(got[key], expected[key], f"{path}[{key!r}]") for key in expected)


def _of_sequences(got: Any, expected: Any, path: str) -> str | None:
    if len(got) != len(expected):
        return f"{path} has {len(got)} items, not {len(expected)}"
    names = [f".{name}" for name in getattr(expected, "_fields", ())] or [f"[{k}]" for k in range(len(expected))]
    items = zip(names, got, expected, strict=True)
    return _first(difference(mine, theirs, path + name) for name, mine, theirs in items)


def _of_dataclasses(got: Any, expected: Any, path: str) -> str | None:
    names = [field.name for field in dataclasses.fields(expected)]
    return _first(difference(getattr(got, name), getattr(expected, name), f"{path}.{name}") for name in names)


def _of_arrays(got: Any, expected: Any, path: str) -> str | None:
    for name in ("dtype", "shape"):
        mine, theirs = getattr(got, name), getattr(expected, name)
        if mine != theirs:
            return f"{path} has {name} {mine}, not {theirs}"
    return _of_numpy(_as_numpy(got), _as_numpy(expected), path)


def _of_numpy(got: NDArray[Any], expected: NDArray[Any], path: str) -> str | None:
    if expected.dtype.hasobject:
        return _of_sequences(got.ravel().tolist(), expected.ravel().tolist(), f"{path}.ravel()")
    if expected.dtype.names:
        return _first(_of_numpy(got[name], expected[name], f"{path}[{name!r}]") for name in expected.dtype.names)
    differing = (got != expected) & ~((got != got) & (expected != expected))  # NaN and NaT: not even themselves
    if not differing.any():
        return None
    first = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(differing)))[: expected.ndim]
    where = f"{path}[{', '.join(map(str, first))}]" if first else path
    values = f"{where} is {_shown(got[first].item())}, not {_shown(expected[first].item())}"
    return f"{values}; {np.count_nonzero(differing)} of {differing.size} values differ" if first else values


def _of_objects(got: Any, expected: Any, path: str) -> str | None:
    if got is expected or (isinstance(expected, float | complex) and got != got and expected != expected):
        return None
    has_no_equality = type(expected).__eq__ is object.__eq__  # type: ignore[comparison-overlap]
    if has_no_equality and hasattr(expected, "__dict__"):
        return _of_dicts(vars(got), vars(expected), f"vars({path})")
    if np.asarray(got == expected).all():
        return None
    return f"{path} is {_shown(got)}, not {_shown(expected)}"


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(type(value))


# Whoever comes first compares it.
_KINDS: list[tuple[Callable[[Any], bool], Callable[[Any, Any, str], str | None]]] = [
    (lambda value: isinstance(value, Mapping), _of_dicts),
    (lambda value: isinstance(value, list | tuple), _of_sequences),
    (_is_dataclass, _of_dataclasses),
    (_is_array, _of_arrays),
]


def _as_numpy(array: Any) -> NDArray[Any]:
    """Any framework's array, with the same values."""
    if hasattr(array, "to_dense"):  # torch
        array = array.to_dense()
        try:
            return np.asarray(array.numpy(force=True))
        except TypeError:  # bfloat16 and the like, which numpy has not
            return np.asarray(array.float().numpy(force=True))
    if hasattr(array, "numpy"):  # TensorFlow, tinygrad
        return np.asarray(array.numpy())
    return np.asarray(array)


def _first(found: Any) -> str | None:
    return next((words for words in found if words is not None), None)


def _shown(value: Any) -> str:
    words = " ".join(repr(value).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
