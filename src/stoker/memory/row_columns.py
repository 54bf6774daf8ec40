"""Rows with arrays in them that are all alike, such as ``(array, 3)`` or ``{"x": array, "name": "a"}``, by columns.

A collate function that leaves samples as they are gives a list of them. Taken apart leaf by leaf, each array is some
microseconds of Python on both sides. So the list is turned into columns, by few calls for all rows; the arrays of a
column lie one behind the other in the slot, and the reader cuts rows of the columns again. What it gets is the same as
from a walk over the leaves: containers and arrays of its own, and objects that are the same in two rows still are.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from stoker.collation.alike import all_are, array_of
from stoker.collation.columns import Array, Objects, Whole
from stoker.collation.tensors import array_as_tensor, dtype_name, is_plain_tensor, tensor_as_array
from stoker.collation.tree import Assembled, Branch, is_namedtuple
from stoker.memory.array_layout import aligned
from stoker.memory.rows import FEW, are_objects, are_rows, cls_unless_plain_rows, cls_unless_rows

_SMALL = 2**19  # bytes of a column: up to here one copy more, in the caches, costs less than care for each array
_DEEPEST = 16  # containers in containers
_GAPS = [bytes(-size % 64) for size in range(64)]  # behind an array, by the rest of its size


class Unlike(Exception):
    """No error: the rows have no common form. They are walked over."""


class ArrayForm(NamedTuple):
    """What the arrays of a column have in common. ``shape`` is None where each has its own; ``tensor`` as in a leaf."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None
    tensor: str


class RowArrays:
    """The arrays of one column, each from a multiple of 64 bytes on: a column of bytes."""

    __slots__ = ("_arrays", "_gaps", "dtype", "shape", "tensor")

    def __init__(self, arrays: list[Array], sizes: list[int]) -> None:
        self._arrays, self._gaps = arrays, [_GAPS[size % 64] for size in sizes]
        self.shape: tuple[int, ...] = (sum(sizes) + sum(map(len, self._gaps)),)
        self.dtype, self.tensor = np.dtype(np.uint8), ""

    def write(self, out: Array) -> None:
        if out.nbytes <= _SMALL and self._join(out):
            return
        at = 0
        for array in self._arrays:
            np.copyto(np.ndarray(array.shape, array.dtype, out, at), array)
            at += aligned(array.nbytes)

    def parts(self) -> list[Array]:
        """None where there are gaps between them."""
        return [] if any(self._gaps) else self._arrays

    def _join(self, out: Array) -> bool:
        """As bytes, at several times the speed. False if that cannot be, as where one is not contiguous."""
        buffers: Any = chain.from_iterable(zip(self._arrays, self._gaps, strict=True))
        try:
            out.data[:] = b"".join(buffers)
        except (BufferError, TypeError, ValueError):
            return False
        return True


class TupleRows(Assembled):
    """A list of tuples, by columns."""

    @classmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        return list(zip(*children, strict=True))


class ListRows(Assembled):
    """A list of lists, by columns."""

    @classmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        return list(map(list, zip(*children, strict=True)))


class NamedTupleRows(Assembled):
    """A list of namedtuples, by columns. A key is the class and the name of a field."""

    @classmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        # Without the class's own __new__, which may want other arguments, and has had its way with these.
        return list(map(partial(tuple.__new__, keys[0][0]), zip(*children, strict=True)))


class DictRows(Assembled):
    """A list of dicts, by columns."""

    @classmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        return [dict(zip(keys, row, strict=True)) for row in zip(*children, strict=True)]


class ScalarRows(Assembled):
    """A list of numbers of one of numpy's classes, as an array."""

    @classmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        return list(children[0])


class ArrayRows(Assembled):
    """A list of arrays or tensors of one shape, as bytes."""

    @classmethod
    def assemble(cls, keys: tuple[ArrayForm, ...], children: list[Any]) -> Any:
        (dtype, shape, tensor), raw = keys[0], children[0]
        assert shape is not None
        first: Array = np.ndarray(shape, dtype, raw)
        step = aligned(first.nbytes)
        arrays = list(np.ndarray((len(raw) // step, *shape), dtype, raw, 0, (step, *first.strides)))
        return _as_tensors(arrays, tensor)


class RaggedRows(Assembled):
    """A list of arrays or tensors of different shapes, as bytes, and their shapes."""

    @classmethod
    def assemble(cls, keys: tuple[Any, ...], children: list[Any]) -> Any:
        (dtype, _, tensor), (raw, shapes) = keys[0], children
        arrays, at = [], 0
        for shape in shapes:
            array: Array = np.ndarray(shape, dtype, raw, at)
            arrays.append(array)
            at += aligned(array.nbytes)
        return _as_tensors(arrays, tensor)


def _as_tensors(arrays: list[Array], tensor: str) -> list[Any]:
    """Each in a storage of its own, as if it had come alone."""
    return [array_as_tensor(array, tensor) for array in arrays] if tensor else arrays


_ROWS: dict[type, type[Assembled]] = {tuple: TupleRows, list: ListRows, dict: DictRows}


def by_columns(value: Any) -> type | Branch | None:
    """As ``cls_unless_rows``, but for rows that are alike, their columns."""
    cls = cls_unless_rows(value)
    return cls if cls is not list or len(value) < FEW else columns_of_rows(value) or cls


def by_columns_within_process(value: Any) -> type | Branch | None:
    """The same as ``cls_unless_plain_rows``."""
    cls = cls_unless_plain_rows(value)
    return cls if cls is not list or len(value) < FEW else columns_of_rows(value, shared=True) or cls


def columns_of_rows(values: list[Any], *, shared: bool = False) -> Branch | None:
    """The columns of rows; None if they are not alike. ``shared``: nothing is pickled, so no containers are copied."""
    objects: list[Any] = []
    try:
        found = _column(values, objects, _DEEPEST)
    except Unlike:
        return None
    if type(found) is not Branch:
        return None
    # All at once: a container that is there twice, be it in two columns, would be pickled as one.
    is_fit = are_objects(objects) if shared else are_rows(objects, objects_too=True)
    return found if is_fit else None


def _column(values: list[Any], objects: list[Any], depth: int) -> Branch | Objects:
    """What is a list of in the rows. What has no form of its own is an object, and noted."""
    cls = type(values[0])
    if all_are(cls, values):
        if depth and (cls in _ROWS or is_namedtuple(cls)):
            return _containers(cls, values, objects, depth - 1)
        if cls is np.ndarray:
            return _arrays(values, "")
        torch = sys.modules.get("torch")
        if torch is not None and cls is torch.Tensor:
            return _tensors(values)
        if issubclass(cls, np.generic) and (numbers := array_of(values)) is not None:
            return Branch(ScalarRows, (None,), [Whole(numbers)])
    objects += values
    return Objects(values)


def _containers(cls: type, values: list[Any], objects: list[Any], depth: int) -> Branch | Objects:
    first = values[0]
    keys: tuple[Any, ...]
    if cls is dict:
        keys, given = tuple(first), list(chain.from_iterable(values))
        # Also in the same order; and texts only, since True is 1 to a comparison.
        is_alike = given == list(keys) * len(values) and all_are(str, given)
        rows: Any = map(dict.values, values)
    else:
        keys = tuple(range(len(first))) if cls in _ROWS else tuple((cls, name) for name in first._fields)
        rows = values
        is_alike = list(map(len, values)).count(len(first)) == len(values)
    # More columns than rows are not worth it: a list of few batches, as it may be.
    if not is_alike or not 0 < len(keys) <= len(values):
        objects += values
        return Objects(values)
    rows_of = _ROWS.get(cls, NamedTupleRows)
    return Branch(rows_of, keys, [_column(list(column), objects, depth) for column in zip(*rows, strict=True)])


def _tensors(tensors: list[Any]) -> Branch:
    torch, dtype = sys.modules["torch"], tensors[0].dtype
    if [tensor.dtype for tensor in tensors].count(dtype) != len(tensors):
        raise Unlike
    if not all(map(torch.Tensor.is_contiguous, tensors)):
        raise Unlike  # the order of its axes in memory is kept
    try:
        arrays = [tensor.numpy() for tensor in tensors]
    except (TypeError, RuntimeError):  # bfloat16, or more than its elements
        if not all(map(is_plain_tensor, tensors)):
            raise Unlike from None
        arrays = list(map(tensor_as_array, tensors))
    return _arrays(arrays, dtype_name(tensors[0]))


def _arrays(arrays: list[Array], tensor: str) -> Branch:
    dtype, shape = arrays[0].dtype, arrays[0].shape
    if dtype.hasobject or [array.dtype for array in arrays].count(dtype) != len(arrays):
        raise Unlike
    shapes = [array.shape for array in arrays]
    if shape and arrays[0].nbytes and shapes.count(shape) == len(arrays):
        column = RowArrays(arrays, [arrays[0].nbytes] * len(arrays))
        return Branch(ArrayRows, (ArrayForm(dtype, shape, tensor),), [column])
    column = RowArrays(arrays, [array.nbytes for array in arrays])
    return Branch(RaggedRows, (ArrayForm(dtype, None, tensor), "shapes"), [column, Objects(shapes)])
