"""The default collation: a list of samples -> one tree whose leaves are columns (arrays) or ``Objects`` (all else)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stoker.collation.alike import array_of, columns_of
from stoker.collation.columns import (
    Array,
    Column,
    Columnar,
    Gathered,
    Objects,
    Stack,
    TensorStack,
    Whole,
    any_masked,
    is_plain,
)
from stoker.collation.promotion import common_dtype, numbers_as_array
from stoker.collation.tensors import (
    are_simple,
    described,
    is_dense,
    is_plain_tensor,
    is_tensor,
    quantizer,
    tensor_as_array,
    tensor_dtype,
    tensors_as_arrays,
)
from stoker.collation.tree import Branch, build, container_class, is_judged, is_mapping, items, step
from stoker.errors import CollateError

_REMEDY = "give samples of one form, or pass your own collate=function(list of samples) -> batch"
_NUMBERS = (bool, int, float, complex, np.generic)
_TEXTS = (str, bytes)  # np.str_ and np.bytes_ are both of these and np.generic
_PLAIN_TEXTS = set(_TEXTS)

# Arrays, their path, their indices, and the torch dtype that they are to have in the batch ('': they stay numpy).
StackArrays = Callable[[list[Array], str, Sequence[int], str], Column]


def collate(samples: Sequence[Any], indices: Sequence[int] = ()) -> Any:
    """Collates samples into one tree of the same form.

    Arrays, tensors and numbers become columns; strings, bytes and other objects become ``Objects``; ``None`` in every
    sample stays ``None``. ``indices`` are only for error messages.
    """
    return _STACKING(samples, indices)


class Collation:
    """One walk over the samples, column by column; ``stack`` says what becomes of a column of arrays."""

    def __init__(self, stack: StackArrays, *, tensors_too: bool = False) -> None:
        self._stack = stack
        self._tensors_too = tensors_too  # stack means just to put one under the other, which torch can do as well

    def __call__(self, samples: Sequence[Any], indices: Sequence[int] = ()) -> Any:
        if type(samples) is Gathered:
            return samples.tree
        if isinstance(samples, np.ndarray) and is_plain(samples):
            return Whole(samples)  # __getitems__ gave the whole batch at once
        if is_tensor(samples):
            return _whole_tensor(samples)
        if type(samples) is Columnar:
            return self._table(samples, indices or range(len(samples)))
        return self._column(list(samples), "sample", indices or range(len(samples)))

    def _table(self, samples: Columnar, indices: Sequence[int]) -> Any:
        """What would become of the samples, without taking the columns apart where they are batches already."""
        done = {}
        for key, column in samples.columns.items():
            if type(column) is np.ndarray and column.ndim and column.dtype.kind in "biuf":
                done[key] = Whole(column)
            elif is_tensor(column) and column.ndim and is_plain_tensor(column):
                done[key] = _whole_tensor(column)
            else:
                values = column if type(column) is list else [column[nth] for nth in range(len(samples))]
                done[key] = self._column(values, "sample" + step(dict, key), indices)
        return done

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
        if any_masked(values):  # whose masks would be lost
            raise mixed(values, path, indices)
        return self._stack(values, path, indices, "")

    def _tensors(self, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        if self._tensors_too and are_simple(values):
            return TensorStack(values, lambda: self._converted(values, path, indices))
        return self._converted(values, path, indices)

    def _converted(self, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        dtype = values[0].dtype if all(map(is_tensor, values)) else None
        if dtype is None or any(value.dtype != dtype for value in values):
            raise mixed(values, path, indices)
        found = tensors_as_arrays(values)
        if found is None:
            return _stacked_by_torch(values, path, indices)
        arrays, tensor = found
        return self._stack(arrays, path, indices, tensor)

    def _containers(self, cls: type, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        found = columns_of(values) if cls is type(values[0]) else None
        if found is not None:  # the common case, without a walk over every sample
            return self._build(cls, *found, path, indices)
        if is_mapping(cls):
            return self._mappings(cls, values, path, indices)
        keys, _ = items(values[0])
        rows = []
        for value, index in zip(values, indices, strict=False):
            if container_class(value) is not cls:
                raise mixed(values, path, indices)
            own_keys, children = items(value)
            if own_keys != keys:
                raise _keys_differ(cls, keys, own_keys, path, indices[0], index)
            rows.append(children)
        columns = [list(column) for column in zip(*rows, strict=True)]
        return self._build(cls, keys, columns, path, indices)

    def _mappings(self, cls: type, values: list[Any], path: str, indices: Sequence[int]) -> Any:
        """Mappings of one class, or, if they are of several, a dict."""
        expected = values[0].keys()
        for value, index in zip(values, indices, strict=False):
            if not isinstance(value, dict) and not is_mapping(container_class(value)):
                raise mixed(values, path, indices)
            if value.keys() != expected:
                raise _keys_differ(cls, tuple(expected), tuple(value), path, indices[0], index)
        keys = tuple(expected)
        if cls is not dict and any(container_class(value) is not cls for value in values):
            cls = dict
        return self._build(cls, keys, [[value[key] for value in values] for key in keys], path, indices)

    def _build(
        self, cls: type, keys: tuple[Any, ...], columns: list[list[Any]], path: str, indices: Sequence[int]
    ) -> Any:
        done = [self._column(column, path + step(cls, key), indices) for key, column in zip(keys, columns, strict=True)]
        return Branch(cls, keys, done) if cls is not dict and is_mapping(cls) else build(cls, keys, done)


def stack_arrays(arrays: list[Array], path: str, indices: Sequence[int], tensor: str) -> Stack:
    """A column of arrays of one shape; ragged ones are an error that names the two samples."""
    try:
        dtypes = [array.dtype for array in arrays]
    except AttributeError:
        raise mixed(arrays, path, indices) from None
    dtype = dtypes[0]
    cast = dtypes.count(dtype) != len(arrays)
    if cast:
        if not all(isinstance(array, np.ndarray) for array in arrays):
            raise mixed(arrays, path, indices)
        dtype = common_dtype(arrays, path, indices)
    return Stack(arrays, dtype, path, indices, tensor, cast=cast)


_STACKING = Collation(stack_arrays, tensors_too=True)


def _whole_tensor(tensor: Any) -> Any:
    """A tensor that is there already: as a column, or, if it is more than an array can hold, as it is."""
    return Whole(tensor_as_array(tensor), tensor_dtype(tensor)) if is_dense(tensor) else tensor


def _stacked_by_torch(values: list[Any], path: str, indices: Sequence[int]) -> Any:
    """Tensors that no array can hold: sparse, quantized, of a class of their own. Torch can stack some of them."""
    other = next((k for k, value in enumerate(values) if quantizer(value) != quantizer(values[0])), None)
    if other is not None:  # torch would round all of them to the first one's scale
        raise CollateError(
            f"{path} is a tensor quantized by {quantizer(values[0])} in sample {indices[0]} and by "
            f"{quantizer(values[other])} in sample {indices[other]}: give tensors of one scale and zero point, "
            f"or dequantize() them in the dataset"
        )
    try:
        return _whole_tensor(sys.modules["torch"].stack(values))
    except Exception as error:  # whatever torch, or the tensors' class, says
        raise CollateError(
            f"{path} is {described(values[0])} in sample {indices[0]}, and torch.stack cannot make a batch of such "
            f"({str(error).splitlines()[0]}): give dense tensors (to_dense(), dequantize()), or pass your own "
            f"collate=function(list of samples) -> batch, which may also leave them a list"
        ) from error


def _numbers(values: list[Any], path: str, indices: Sequence[int]) -> Any:
    quick = array_of(values)
    if quick is not None:
        return Whole(quick)
    kinds = set(map(type, values))
    if not all(issubclass(kind, _NUMBERS) and not issubclass(kind, _TEXTS) for kind in kinds):
        raise mixed(values, path, indices)
    array = numbers_as_array(values, kinds, path, indices)
    if array.dtype == object:
        raise mixed(values, path, indices)
    return Whole(array)


def _others(values: list[Any], path: str, indices: Sequence[int]) -> Objects:
    """Strings, bytes and objects travel as a list; an array, number or container among them is a mistake."""
    if set(map(type, values)) <= _PLAIN_TEXTS:
        return Objects(values)
    kinds = {type(value): value for value in values}
    for value in kinds.values() if all(map(is_judged, kinds)) else values:
        if isinstance(value, _TEXTS):
            continue
        if isinstance(value, (np.ndarray, *_NUMBERS)) or is_tensor(value) or container_class(value) is not None:
            raise mixed(values, path, indices)
    return Objects(values)


def mixed(values: Sequence[Any], path: str, indices: Sequence[int]) -> CollateError:
    """The error of samples that are of several kinds."""
    names = [type(value).__name__ for value in values]
    if len(set(names)) == 1:
        names = [str(getattr(value, "dtype", "")) for value in values]
    other = next((k for k, name in enumerate(names) if name != names[0]), 0)
    return CollateError(
        f"{path} is {names[0]} in sample {indices[0]} and {names[other]} in sample {indices[other]}: {_REMEDY}"
    )


def _keys_differ(
    cls: type, keys: tuple[Any, ...], others: tuple[Any, ...], path: str, index: int, other: int
) -> CollateError:
    if is_mapping(cls):
        what = f"has the keys {list(keys)} in sample {index} and {list(others)} in sample {other}"
    else:
        what = f"has {len(keys)} elements in sample {index} and {len(others)} in sample {other}"
    return CollateError(f"{path} {what}: {_REMEDY}")
