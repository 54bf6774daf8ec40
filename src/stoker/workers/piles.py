"""Lists of samples that are all alike, as datasets hold them: their arrays are looked at by the thousand.

To pickle an array takes a microsecond or two, to join a thousand of them a tenth of that each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from stoker.collation.alike import all_are, columns_of
from stoker.collation.tensors import is_plain_tensor, is_tensor, tensor_as_array
from stoker.collation.tree import flatten, is_namedtuple

_FEW = 64  # samples: fewer are as quickly looked at one by one
_DEEPEST = 4  # containers in containers
_SMALL = 2**16  # bytes: bigger arrays are read for longer than it takes to pickle them, and uncopied
_AT_ONCE = 2**20  # bytes that are joined, and so copied, at a time
_IS_NESTED = attrgetter("is_nested")
_FORM = attrgetter("dtype", "shape", "layout", "is_cpu", "requires_grad")  # all that plain tensors can differ in


class Pile:
    """Arrays, or tensors, of one type and shape: ``contents`` is all that is in them, in pieces."""

    __slots__ = ("arrays", "dtype", "shape")

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.dtype, self.shape = arrays[0].dtype, tuple(arrays[0].shape)

    def contents(self) -> Iterator[Any]:
        step = _AT_ONCE // max(_nbytes(self.arrays[0]), 1)
        for start in range(0, len(self.arrays), step):
            piece = self.arrays[start : start + step]
            if is_tensor(piece[0]):
                yield tensor_as_array(sys.modules["torch"].stack(piece))
            else:
                yield b"".join(piece)


def is_long(values: Any) -> bool:
    return type(values) is list and len(values) >= _FEW


def piled(values: Any, depth: int = _DEEPEST) -> Any:
    """The same, with a ``Pile`` for each column of arrays where it is a long list of samples that are alike."""
    if not is_long(values):
        return values
    first = values[0]
    if type(first) is np.ndarray:
        return Pile(values) if _are_arrays(values) else values
    if is_tensor(first):
        return Pile(values) if _are_tensors(values) else values
    found = columns_of(values) if depth and _is_plain_container(first) and _holds_arrays(first) else None
    if found is None or (type(first) is dict and len(set(map(tuple, values))) > 1):  # with keys in another order
        return values
    keys, columns = found
    return type(first), keys, [piled(column, depth - 1) for column in columns]


def _is_plain_container(sample: Any) -> bool:
    """Whether it is nothing but its items."""
    return type(sample) in (dict, list, tuple) or (is_namedtuple(type(sample)) and not hasattr(sample, "__dict__"))


def _holds_arrays(sample: Any) -> bool:
    leaves, _ = flatten(sample)
    return any(isinstance(leaf, np.ndarray) or is_tensor(leaf) for leaf in leaves)


def _nbytes(array: Any) -> int:
    return tensor_as_array(array).nbytes if is_tensor(array) else int(array.nbytes)


def _are_arrays(values: list[Any]) -> bool:
    """Whether they are of one type and shape, and their elements lie one after the other."""
    dtype, shape = values[0].dtype, values[0].shape
    return (
        _nbytes(values[0]) <= _SMALL
        and set(map(type, values)) == {np.ndarray}
        and dtype.kind in "biufc"
        and [array.dtype for array in values].count(dtype) == len(values)
        and [array.shape for array in values].count(shape) == len(values)
        and all(array.flags.c_contiguous for array in values)
    )


def _are_tensors(values: list[Any]) -> bool:
    """Whether they are of one type and shape, and each worker has its own."""
    return (
        all_are(sys.modules["torch"].Tensor, values)
        and is_plain_tensor(values[0])
        and _nbytes(values[0]) <= _SMALL
        and not any(map(_IS_NESTED, values))  # such have no shape
        and len(set(map(_FORM, values))) == 1
        and not any(tensor.untyped_storage().is_shared() for tensor in values)
    )
