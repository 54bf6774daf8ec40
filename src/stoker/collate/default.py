"""The default collation: a list of samples -> one tree whose leaves are columns (arrays) or ``Objects`` (all else)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stoker.collate.columns import Array, Column, Objects, Stack, Whole, is_plain
from stoker.collate.tensors import is_tensor, tensor_as_array, tensor_dtype
from stoker.collate.tree import build, container_class, items, step
from stoker.errors import CollateError

_REMEDY = "give samples of one form, or pass your own collate=function(list of samples) -> batch"
_NUMBERS = (bool, int, float, complex, np.generic)
_TEXTS = (str, bytes)  # np.str_ and np.bytes_ are both of these and np.generic

StackArrays = Callable[[list[Array], str, Sequence[int]], Column]


def collate(samples: Sequence[Any], indices: Sequence[int] = ()) -> Any:
    """Collates samples into one tree of the same form.

    Arrays, tensors and numbers become columns; strings, bytes and other objects become ``Objects``; ``None`` in every
    sample stays ``None``. ``indices`` are only for error messages.
    """
    return _STACKING(samples, indices)


class Collation:
    """One walk over the samples, column by column; ``stack`` says what becomes of a column of arrays."""

    def __init__(self, stack: StackArrays) -> None:
        self._stack = stack

    def __call__(self, samples: Sequence[Any], indices: Sequence[int] = ()) -> Any:
        if isinstance(samples, np.ndarray) and is_plain(samples):
            return Whole(samples)  # __getitems__ gave the whole batch at once
        if is_tensor(samples):
            return Whole(tensor_as_array(samples), tensor_dtype(samples))
        return self._column(list(samples), "sample", indices or range(len(samples)))

    def _column(self, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        first = values[0]
        if isinstance(first, np.ndarray):
            return self._arrays(values, path, indices)
        if isinstance(first, _NUMBERS) and not isinstance(first, _TEXTS):
            return _numbers(values, path, indices)
        if is_tensor(first):
            return self._tensors(values, path, indices)
        cls = container_class(first)
        if cls is not None:
            return self._containers(cls, values, path, indices)
        if first is None and all(value is None for value in values):
            return None
        return _others(values, path, indices)

    def _arrays(self, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        if not is_plain(values[0]):
            return Objects(values)
        return self._stack(values, path, indices)

    def _tensors(self, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        dtype = values[0].dtype if all(map(is_tensor, values)) else None
        if dtype is None or any(value.dtype != dtype for value in values):
            raise _mixed(values, path, indices, dtypes=dtype is not None)
        column = self._stack([tensor_as_array(value) for value in values], path, indices)
        column.tensor = tensor_dtype(values[0])
        return column

    def _containers(self, cls: type, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        if cls is dict:  # the common case, without the generic walk over every sample
            return self._dicts(values, path, indices)
        keys, _ = items(values[0])
        rows = []
        for value, index in zip(values, indices, strict=False):
            if container_class(value) is not cls:
                raise _mixed(values, path, indices)
            own_keys, children = items(value)
            if own_keys != keys and set(own_keys) != set(keys):
                raise _keys_differ(cls, keys, own_keys, path, indices[0], index)
            if own_keys != keys:
                by_key = dict(zip(own_keys, children, strict=True))
                children = tuple(by_key[key] for key in keys)
            rows.append(children)
        columns = [list(column) for column in zip(*rows, strict=True)]
        return self._build(cls, keys, columns, path, indices)

    def _dicts(self, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        expected = values[0].keys()
        for value, index in zip(values, indices, strict=False):
            if not isinstance(value, dict):
                raise _mixed(values, path, indices)
            if value.keys() != expected:
                raise _keys_differ(dict, tuple(expected), tuple(value), path, indices[0], index)
        keys = tuple(expected)
        return self._build(dict, keys, [[value[key] for value in values] for key in keys], path, indices)

    def _build(
        self, cls: type, keys: tuple[Any, ...], columns: list[list[Any]], path: str, indices: Sequence[int]
    ) -> Any:
        done = [self._column(column, path + step(cls, key), indices) for key, column in zip(keys, columns, strict=True)]
        return build(cls, keys, done)


def stack_arrays(arrays: list[Array], path: str, indices: Sequence[int]) -> Stack:
    """A column of arrays of one shape; ragged ones are an error that names the two samples."""
    try:
        dtypes = [array.dtype for array in arrays]
    except AttributeError:
        raise _mixed(arrays, path, indices) from None
    dtype = dtypes[0]
    if dtypes.count(dtype) != len(arrays):
        if not all(isinstance(array, np.ndarray) for array in arrays):
            raise _mixed(arrays, path, indices)
        dtype = np.result_type(*dtypes)
    return Stack(arrays, dtype, path, indices)


_STACKING = Collation(stack_arrays)


def _numbers(values: list[Any], path: str, indices: Sequence[int]) -> Any:
    for value in values:
        if not isinstance(value, _NUMBERS):
            raise _mixed(values, path, indices)
    array = np.array(values)
    if array.dtype == object:
        raise CollateError(
            f"{path} holds an integer that does not fit 64 bits ({max(values, key=abs)}): "
            f"give it as a string, or pass your own collate"
        )
    return Whole(array)


def _others(values: list[Any], path: str, indices: Sequence[int]) -> Objects:
    """Strings, bytes and objects travel as a list; an array, number or container among them is a mistake."""
    for value in values:
        if isinstance(value, _TEXTS):
            continue
        if isinstance(value, (np.ndarray, *_NUMBERS)) or is_tensor(value) or container_class(value) is not None:
            raise _mixed(values, path, indices)
    return Objects(values)


def _mixed(values: list[Any], path: str, indices: Sequence[int], *, dtypes: bool = False) -> CollateError:
    names = [str(value.dtype) if dtypes else type(value).__name__ for value in values]
    other = next((k for k, name in enumerate(names) if name != names[0]), 0)
    return CollateError(
        f"{path} is {names[0]} in sample {indices[0]} and {names[other]} in sample {indices[other]}: {_REMEDY}"
    )


def _keys_differ(
    cls: type, keys: tuple[Any, ...], others: tuple[Any, ...], path: str, index: int, other: int
) -> CollateError:
    if issubclass(cls, dict):
        what = f"has the keys {list(keys)} in sample {index} and {list(others)} in sample {other}"
    else:
        what = f"has {len(keys)} elements in sample {index} and {len(others)} in sample {other}"
    return CollateError(f"{path} {what}: {_REMEDY}")
