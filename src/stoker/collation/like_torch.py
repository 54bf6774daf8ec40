"""Samples collated as ``torch.utils.data.default_collate`` does it, type by type, but without copying anything yet.

Samples that are all alike, of the types that nearly all have, are collated here; anything else is left to torch, which
also has the errors of samples that do not fit together.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from stoker.collation.alike import all_are, array_of, columns_of
from stoker.collation.at_once import Unlike, collated_at_once
from stoker.collation.columns import Column, Columnar, Gathered, Objects, Stack, Taken, TensorStack, Tupled, Whole, made
from stoker.collation.tensors import are_simple, is_plain_tensor, tensor_as_array, tensor_dtype
from stoker.collation.tentative import Tentative
from stoker.collation.tree import is_namedtuple

# The dtypes that numpy and torch both have, by their names, which are the same.
_COMMON = {
    np.dtype(kind): np.dtype(kind).name
    for kind in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    )
}


def like_torch(samples: Any, otherwise: Callable[[], Any] | None = None) -> Any:
    """One tree, whose leaves are columns that will be tensors; or, where torch had to do it, what torch gives.

    ``otherwise``: gives what takes its place if torch will not stack the tensors. None: that they fit is checked first.
    """
    from torch.utils.data import default_collate

    if not _is_torchs_own():
        return default_collate(list(samples))
    with contextlib.suppress(Unlike):  # and not the context of torch's error, which users read
        if type(samples) is Gathered:
            return _gathered(samples.tree)
        if type(samples) is Columnar:
            return {key: _table_column(column, len(samples)) for key, column in samples.columns.items()}
        if not isinstance(samples, list) or not samples:
            raise Unlike
        if otherwise is None:
            return _collated(samples, Objects, None)
        part = Tentative(otherwise)
        part.tree = _collated(samples, Objects, part)
        return part
    return default_collate(samples if isinstance(samples, list | tuple) else list(samples))


def made_like_torch(samples: Any) -> Any:
    """The same, as tensors, in memory of torch's own."""
    from torch.utils.data import default_collate

    if type(samples) is Columnar:
        return made(like_torch(samples))
    if _is_torchs_own():
        with contextlib.suppress(Unlike):
            return collated_at_once(samples)
    return default_collate(samples if isinstance(samples, list) else list(samples))


def _is_torchs_own() -> bool:
    """Whether nobody has told torch to collate a type in a way of their own."""
    torch, collate = sys.modules["torch"], sys.modules["torch.utils.data._utils.collate"]
    functions = collate.default_collate_fn_map
    of_tensors = functions.get(torch.Tensor)
    is_own = of_tensors is collate.collate_tensor_fn or hasattr(of_tensors, "is_like_torch")
    return is_own and bool(
        functions
        == {
            torch.Tensor: of_tensors,
            np.ndarray: collate.collate_numpy_array_fn,
            (np.bool_, np.number, np.object_): collate.collate_numpy_scalar_fn,
            float: collate.collate_float_fn,
            int: collate.collate_int_fn,
            str: collate.collate_str_fn,
            bytes: collate.collate_str_fn,
        }
    )


def _collated(values: list[Any], texts: Callable[[list[Any]], Objects | Tupled], part: Tentative | None) -> Any:
    """``texts``: what strings become, which depends on the container that they are in."""
    torch = sys.modules["torch"]
    first = values[0]
    cls = type(first)
    if cls is dict or cls is tuple or cls is list or is_namedtuple(cls):
        return _containers(cls, values, part)
    if cls is torch.Tensor or cls is np.ndarray or cls is str or cls is bytes:
        if not all_are(cls, values):
            raise Unlike
        if cls is torch.Tensor:
            return _tensors(values, part)
        return _arrays(values) if cls is np.ndarray else texts(values)
    array = None if cls is np.uint64 else array_of(values)  # of which torch makes no tensor
    if array is None:
        raise Unlike
    return Whole(array, _COMMON[array.dtype])


def _containers(cls: type, values: list[Any], part: Tentative | None) -> Any:
    found = columns_of(values)
    if found is None:
        raise Unlike
    keys, columns = found
    if cls is dict:
        return {key: _collated(column, Objects, part) for key, column in zip(keys, columns, strict=True)}
    if is_namedtuple(cls) and not _takes_columns(cls):
        raise Unlike
    collated = [_collated(column, Tupled, part) for column in columns]
    return cls(*collated) if is_namedtuple(cls) else collated


@lru_cache(maxsize=1024)
def _takes_columns(cls: type) -> bool:
    """Whether nothing but namedtuple itself makes it: a ``__new__`` of the user's may want the tensors."""
    first = next((base for base in cls.__mro__ if base.__bases__ == (tuple,)), cls)
    return cls.__new__ is first.__new__


def _tensors(values: list[Any], part: Tentative | None) -> Column:
    first = values[0]
    if first.layout is not sys.modules["torch"].strided or not first.is_contiguous():  # torch has ways of its own
        raise Unlike
    if part is not None and first.ndim:  # torch finds out about the others when it stacks them
        if not is_plain_tensor(first):
            raise Unlike
        return TensorStack(values, part.give_way)
    if not are_simple(values):
        raise Unlike
    if len(set(map(sys.modules["torch"].Tensor.numel, values))) > 1:  # so that torch raises now, and not in a slot
        raise Unlike
    return TensorStack(values, lambda: _by_torch(values))


def _by_torch(values: list[Any]) -> Column:
    """Torch could not write them into a slot: it raises, or stacks them in memory of its own."""
    from torch.utils.data import default_collate

    tensor = default_collate(values)
    return Whole(tensor_as_array(tensor), tensor_dtype(tensor))


def _arrays(values: list[Any]) -> Column:
    first = values[0]
    name = _COMMON.get(first.dtype)
    if name is None or [array.dtype for array in values].count(first.dtype) != len(values):
        raise Unlike
    if [array.shape for array in values].count(first.shape) != len(values):
        raise Unlike
    return Stack(values, first.dtype, "sample", (), name, checked=True)


def _gathered(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _as_tensors(column) for key, column in tree.items()}
    return [_as_tensors(column) for column in tree] if isinstance(tree, tuple) else _as_tensors(tree)


def _as_tensors(column: Taken) -> Taken:
    return column if column.tensor else Taken(column.array, column.places, _COMMON[column.dtype])


def _table_column(column: Any, count: int) -> Any:
    if type(column) is np.ndarray and column.dtype in _COMMON:
        return Whole(column, _COMMON[column.dtype])
    if type(column) is sys.modules["torch"].Tensor and column.ndim and is_plain_tensor(column):
        return Whole(tensor_as_array(column), tensor_dtype(column))
    return _collated(column if type(column) is list else [column[nth] for nth in range(count)], Objects, None)
