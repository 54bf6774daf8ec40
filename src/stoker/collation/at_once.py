"""Samples collated as ``torch.utils.data.default_collate`` does it, into memory of torch's own, in less time.

The rules are torch's, which looks at the first sample of a column only: so nothing more is checked here, and what does
not fit together fails in the same call of torch's. Whatever is seldom met is left to ``default_collate`` as a whole.
"""

from __future__ import annotations

import sys
from operator import itemgetter
from typing import Any

import numpy as np

from stoker.collation.alike import all_are, array_of
from stoker.collation.columns import Gathered, Taken, materialize
from stoker.collation.tensors import array_as_tensor
from stoker.collation.tree import is_namedtuple

_FEW = 8  # numbers: fewer are as quickly put together by torch
_SMALL = 2**13  # bytes of an array: up to here, joining all as bytes and copying them once more is quicker than torch


class Unlike(Exception):
    """Torch itself must collate these."""


def collated_at_once(samples: Any) -> Any:
    """The batch, of tensors.

    Raises:
        Unlike: Torch must do it, or say what is wrong with it.
    """
    if type(samples) is Gathered:
        return _gathered(samples.tree)
    if type(samples) is not list:
        raise Unlike
    return _collated(samples)


def _collated(values: Any) -> Any:
    torch, first = sys.modules["torch"], values[0]
    cls = type(first)
    if cls is torch.Tensor:
        if first.is_nested or first.layout is not torch.strided:
            raise Unlike
        return torch.stack(values)
    if cls is tuple or cls is list or is_namedtuple(cls):
        return _sequences(cls, values)
    if cls is dict:
        return {key: _collated(list(map(itemgetter(key), values))) for key in first}
    if cls is str or cls is bytes:
        return values
    return _arrays(values) if cls is np.ndarray else _numbers(cls, values)


def _sequences(cls: type, values: Any) -> Any:
    try:
        columns = [_collated(column) for column in zip(*values, strict=True)]
    except (TypeError, ValueError):  # as where they are not all as long
        raise Unlike from None
    return cls(*columns) if is_namedtuple(cls) else columns


def _numbers(cls: type, values: Any) -> Any:
    torch = sys.modules["torch"]
    if cls is int and len(values) < _FEW:
        return torch.tensor(values)
    array = None if cls is np.uint64 else array_of(values)  # of which torch makes no tensor
    if array is None:
        raise Unlike
    return torch.from_numpy(array).clone()  # of which the memory is torch's own, so that it can be resized


def _arrays(values: Any) -> Any:
    torch, first = sys.modules["torch"], values[0]
    shape, dtype = first.shape, first.dtype
    if dtype.kind not in "biufc" or not dtype.isnative or not all_are(np.ndarray, values):
        raise Unlike
    if not 0 < first.nbytes <= _SMALL or len(values) == 1:
        return torch.stack(list(map(torch.from_numpy, values)))
    if any(array.shape != shape or array.dtype != dtype for array in values):
        raise Unlike
    if 1 in shape and any(min(array.strides) < 0 for array in values):  # contiguous to numpy, and refused by torch
        raise Unlike
    try:
        joined = np.frombuffer(bytearray().join(values), dtype)
    except (BufferError, TypeError, ValueError):  # one of them is not contiguous
        raise Unlike from None
    return torch.from_numpy(joined.reshape(len(values), *shape)).clone()


def _gathered(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _rows(column) for key, column in tree.items()}
    return [_rows(column) for column in tree] if isinstance(tree, tuple) else _rows(tree)


def _rows(column: Taken) -> Any:
    torch = sys.modules["torch"]
    if not column.array.flags.writeable:  # of which torch would warn
        return torch.from_numpy(materialize(column)).clone()
    whole = array_as_tensor(column.array, column.tensor) if column.tensor else torch.from_numpy(column.array)
    return whole.index_select(0, torch.from_numpy(column.places.astype(np.int64, copy=False)))
