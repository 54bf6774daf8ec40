"""Columns: one leaf of every sample of a batch, to be written into memory that somebody else provides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from stoker.collation.tensors import array_as_tensor, array_dtype, dtype_name, tensors_as_arrays, write_scalars
from stoker.collation.tree import map_leaves
from stoker.errors import CollateError

Array = np.ndarray[Any, Any]

_JOINED = 2**19  # bytes of a column, and of each array in it: up to here one copy more, in the caches,
_JOINED_EACH = 2**11  # costs less than numpy's care for each array


class Column(Protocol):
    """An array that has not been made yet: what it will be, and a way to write it where it shall stand.

    ``tensor`` is the name of a torch dtype where the batch shall hold a tensor, and empty for a numpy array.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    tensor: str

    def write(self, out: Array) -> None:
        """Fills ``out``, a C-contiguous array of the shape and dtype above."""

    def parts(self) -> list[Array]:
        """The arrays that ``write`` copies one behind the other; none where it does more than that."""


class Stack:
    """Arrays of one shape, one under the other.

    ``cast``: not all of them have the dtype that they shall have. ``checked``: that they have one shape is known.
    """

    __slots__ = ("arrays", "cast", "checked", "dtype", "indices", "path", "shape", "tensor")

    def __init__(
        self,
        arrays: list[Array],
        dtype: np.dtype[Any],
        path: str,
        indices: Sequence[int],
        tensor: str = "",
        *,
        cast: bool = False,
        checked: bool = False,
    ) -> None:
        self.arrays = arrays
        self.shape = (len(arrays), *arrays[0].shape)
        self.dtype = dtype
        self.tensor = tensor
        self.path = path
        self.indices = indices
        self.cast, self.checked = cast, checked

    def write(self, out: Array) -> None:
        """Copies each array into its place; that they have one shape is found out on the way, which is cheaper."""
        if 0 < out.nbytes <= min(_JOINED, len(self.arrays) * _JOINED_EACH) and not self.cast and self._join(out):
            return
        if len(self.shape) == 1:
            self._check_shapes()
            out[...] = self.arrays  # scalars: nothing to concatenate along
            return
        if not self.checked and self._lengths_differ():
            self._check_shapes()
        # np.stack would first make an expanded view of each array; joining along the first axis gives the same
        # bytes at 2.7 times the speed for 256 rows of 1 KB.
        count, first, *rest = self.shape
        try:
            np.concatenate(self.arrays, axis=0, out=out.reshape((count * first, *rest)), casting="same_kind")
        except ValueError:
            self._check_shapes()
            raise

    def parts(self) -> list[Array]:
        return [] if self.cast or not self._have_one_shape() else self.arrays

    def _join(self, out: Array) -> bool:
        """Small arrays as bytes, at twice the speed. False if that cannot be, as where one is not contiguous."""
        if not self._have_one_shape():
            return False
        try:
            buffers: Any = self.arrays  # which arrays are, though not all of NumPy's type hints know it
            out.reshape(-1).view(np.uint8).data[:] = b"".join(buffers)
        except (BufferError, TypeError, ValueError):
            return False
        return True

    def _have_one_shape(self) -> bool:
        return self.checked or [array.shape for array in self.arrays].count(self.shape[1:]) == len(self.arrays)

    def _lengths_differ(self) -> bool:
        try:
            return len(set(map(len, self.arrays))) > 1
        except TypeError:  # a scalar among them has none
            return True

    def _check_shapes(self) -> None:
        shape = self.shape[1:]
        for array, index in zip(self.arrays, self.indices, strict=False):
            if array.shape != shape:
                raise CollateError(
                    f"{self.path} is ragged: it has shape {shape} in sample {self.indices[0]} and {array.shape} in "
                    f"sample {index}. Give arrays of one shape, or pass collate=stoker.pad to fill them up, "
                    f"or your own collate=function(list of samples) -> batch"
                )


class Replaced(Exception):
    """No error: while it was written, a column has turned out to be another. The batch is laid out again with that."""

    def __init__(self, column: Column, instead: Column) -> None:
        super().__init__(column, instead)
        self.column, self.instead = column, instead


class TensorStack:
    """Tensors of one simple dtype, one under the other, which torch itself does at several times the speed.

    ``converted`` makes a column of arrays of them, or says why there is none; torch refuses where shapes, devices or
    layouts differ, and where one of them asks for gradients.
    """

    __slots__ = ("_converted", "_tensors", "dtype", "shape", "tensor")

    def __init__(self, tensors: list[Any], converted: Callable[[], Column]) -> None:
        first = tensors[0]
        self._tensors = tensors
        self._converted = converted
        self.shape = (len(tensors), *first.shape)
        self.dtype = array_dtype(first.dtype)
        self.tensor = dtype_name(first)

    def write(self, out: Array) -> None:
        if not self._is_stacked(out):
            instead = self._converted()
            if instead.tensor != self.tensor:
                raise Replaced(self, instead)
            instead.write(out)

    def _is_stacked(self, out: Array) -> bool:
        if len(self.shape) == 1 and write_scalars(self._tensors, out):
            return True
        try:
            sys.modules["torch"].stack(self._tensors, out=array_as_tensor(out, self.tensor))
        except Exception:  # whatever torch says
            return False
        return True

    def parts(self) -> list[Array]:
        found = tensors_as_arrays(self._tensors)
        if found is None or found[1] != self.tensor or {array.shape for array in found[0]} != {self.shape[1:]}:
            return []
        return found[0]


class Whole:
    """An array that is there already, copied as it is."""

    __slots__ = ("array", "dtype", "shape", "tensor")

    def __init__(self, array: Array, tensor: str = "") -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.tensor = tensor

    def write(self, out: Array) -> None:
        np.copyto(out, self.array)

    def parts(self) -> list[Array]:
        return [self.array]


class Taken:
    """Rows of an array, out of their places."""

    __slots__ = ("array", "dtype", "places", "shape", "tensor")

    def __init__(self, array: Array, places: Array, tensor: str = "") -> None:
        self.array = array
        self.places = places
        self.shape = (len(places), *array.shape[1:])
        self.dtype = array.dtype
        self.tensor = tensor

    def write(self, out: Array) -> None:
        np.take(self.array, self.places, axis=0, out=out, mode="clip")  # which writes straight into out

    def parts(self) -> list[Array]:
        return []


class TakenOfSeveral:
    """Rows of several arrays of one form. ``parts``: each array's rows, and the places of these in the column."""

    __slots__ = ("_parts", "dtype", "shape", "tensor")

    def __init__(self, parts: list[tuple[Taken, Array]]) -> None:
        first = parts[0][0]
        self._parts = parts
        self.shape = (sum(len(places) for _, places in parts), *first.shape[1:])
        self.dtype, self.tensor = first.dtype, first.tensor

    def write(self, out: Array) -> None:
        for taken, places in self._parts:
            out[places] = taken.array.take(taken.places, axis=0)

    def parts(self) -> list[Array]:
        return []


class Pieces:
    """Arrays of one dimension, one behind the other. There is one at least."""

    __slots__ = ("arrays", "dtype", "shape", "tensor")

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self.shape: tuple[int, ...] = (sum(map(len, arrays)),)
        self.dtype = arrays[0].dtype
        self.tensor = ""

    def write(self, out: Array) -> None:
        np.concatenate(self.arrays, out=out)

    def parts(self) -> list[Array]:
        return self.arrays


class Gathered(Sequence[Any]):
    """The samples of a batch, one by one, and ``tree``: what the default collation would make of them all."""

    def __init__(self, dataset: Any, indices: Sequence[int], tree: Any) -> None:
        self._dataset = dataset
        self._indices = indices
        self.tree = tree

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, place: Any) -> Any:
        return self._dataset[self._indices[place]]

    def __iter__(self) -> Iterator[Any]:
        return iter([self._dataset[index] for index in self._indices])


class Columnar(Sequence[Any]):
    """Samples that came as the columns of a table: dicts, which are made only for those who ask for them."""

    def __init__(self, columns: dict[Any, Any], count: int) -> None:
        self.columns = columns
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, nth: Any) -> Any:
        return {key: column[nth] for key, column in self.columns.items()}

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(self._count))


class Objects:
    """Strings, bytes and other objects, one a sample: a leaf that travels beside the arrays, as a list."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values


class Tupled:
    """The same, as a tuple."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = tuple(values)

    def __reduce__(self) -> Any:
        """So that it is what it holds for whoever unpickles it."""
        return tuple, (list(self.values),)


def is_plain(array: Array) -> bool:
    """Whether an array is all there in its memory: no objects, no mask."""
    return not array.dtype.hasobject and not any_masked([array])


def any_masked(arrays: Sequence[Any]) -> bool:
    """Whether one of them has a mask."""
    # numpy.ma is slow to import, and where nobody has, or another thread is just about to, there are no masks.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and any(issubclass(kind, masked) for kind in set(map(type, arrays)))


def made(tree: Any) -> Any:
    """What was collated outside a slot, with arrays in place of columns."""
    return map_leaves(lambda leaf: leaf.values if isinstance(leaf, (Objects, Tupled)) else _as_array(leaf), tree)


def _as_array(leaf: Any) -> Any:
    if not hasattr(leaf, "write"):
        return leaf
    try:
        array = materialize(leaf)
    except Replaced as found:
        return _as_array(found.instead)
    return array_as_tensor(array, leaf.tensor) if leaf.tensor else array


def materialize(column: Column) -> Array:
    """The column as an array of its own, for those who collate outside a slot."""
    out: Array = np.empty(column.shape, column.dtype)
    column.write(out)
    return out
