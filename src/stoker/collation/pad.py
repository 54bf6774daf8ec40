"""A collation that fills ragged arrays up to the longest of the batch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker.collation.columns import Array, Column, Objects, Whole, materialize
from stoker.collation.default import Collation, mixed
from stoker.collation.promotion import common_dtype
from stoker.collation.tensors import array_as_tensor, is_tensor, raw_value
from stoker.collation.tree import map_leaves
from stoker.counts import checked_count
from stoker.errors import CollateError


def pad(samples: Sequence[Any] | None = None, *, value: Any = 0, multiple_of: int = 1) -> Any:
    """Makes one batch of samples whose arrays differ in size, by padding them with ``value``.

    Each axis becomes as long as that of the longest sample; all else is as in ``stoker.collate``. If the model needs
    the true lengths, put them into the samples. Pass it to a loader as ``collate=stoker.pad``, or with arguments as
    ``collate=stoker.pad(value=-1, multiple_of=8)``.

    Args:
        samples: The samples, all of one form. None: return a function that pads samples with the other arguments.
        value: What arrays are padded with.
        multiple_of: The first axis of each array is padded further, to a multiple of this: for hardware that is faster
            so, or to have fewer different shapes to compile for.

    Raises:
        CollateError: The samples do not fit together, or their type cannot hold ``value``.
        ValueError: ``multiple_of`` is not a whole number of 1 or more.

    Example:
        >>> import numpy as np, stoker
        >>> stoker.pad([np.array([1, 2, 3]), np.array([4])], value=-1)
        array([[ 1,  2,  3],
               [ 4, -1, -1]])
        >>> stoker.pad(multiple_of=4)([np.array([1, 2, 3]), np.array([4])])
        array([[1, 2, 3, 0],
               [4, 0, 0, 0]])
        >>> # stoker.Loader(dataset, 32, collate=stoker.pad)
    """

    multiple_of = checked_count("multiple_of", multiple_of, "a number of elements, 1 or more")
    if samples is None:
        return functools.partial(pad, value=value, multiple_of=multiple_of)
    if multiple_of > 1:
        samples = list(samples)  # rows of one array have to be padded, too

    def padded(arrays: list[Array], path: str, indices: Sequence[int], tensor: str) -> Column:
        return Whole(_fill(arrays, value, multiple_of, path, indices, tensor), tensor)

    is_given = isinstance(samples, np.ndarray) or is_tensor(samples)  # by __getitems__: then it is not ours to hand on
    return map_leaves(_copied if is_given else _made, Collation(padded)(samples))


def _fill(arrays: list[Array], value: Any, multiple_of: int, path: str, indices: Sequence[int], tensor: str) -> Array:
    if not all(issubclass(kind, np.ndarray) for kind in set(map(type, arrays))):
        raise mixed(arrays, path, indices)
    dims = [array.ndim for array in arrays]
    if len(set(dims)) > 1:
        other = next(k for k, ndim in enumerate(dims) if ndim != dims[0])
        raise CollateError(
            f"{path} has {dims[0]} axes in sample {indices[0]} and {dims[other]} in sample {indices[other]}: "
            f"pad fills axes up but can't add one; reshape in the dataset"
        )
    longest = np.max([array.shape for array in arrays], axis=0) if dims[0] else np.zeros(0, dtype=np.intp)
    longest[:1] += -longest[:1] % multiple_of
    dtype = arrays[0].dtype
    if any(array.dtype != dtype for array in arrays):
        dtype = common_dtype(arrays, path, indices)
    out = np.full((len(arrays), *longest), filler(value, dtype, path, tensor), dtype)
    if dims[0] == 1:
        for row, array in zip(out, arrays, strict=True):
            row[: len(array)] = array
        return out
    for place, array in enumerate(arrays):
        corner: tuple[Any, ...] = (place, *[slice(size) for size in array.shape])
        out[corner] = array
    return out


def filler(value: Any, dtype: np.dtype[Any], path: str, tensor: str) -> Any:
    """The value as it lies in the array, which for bfloat16 is an array of raw integers.

    Raises:
        CollateError: It would be another there: -1 among unsigned integers, 0.5 among integers, a longer text.
    """
    try:
        raw = raw_value(value, tensor) if tensor else None
        if raw is not None:
            return raw
        with np.errstate(all="ignore"):
            found = np.array(value).astype(dtype)[()]
        if _is_same(found, value, dtype):
            return found
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    kind = tensor or dtype
    raise CollateError(f"{path} is of type {kind}, which cannot hold the padding value={value!r}: pass one that it can")


def _is_same(filler: Any, value: Any, dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "biu":
        return bool(filler == value)
    if dtype.kind in "fc":  # which may round: 0.1 in float32
        return bool(np.isinf(filler) == np.isinf(value))
    return dtype.kind not in "SU" or bool(filler == np.array(value).astype(dtype.kind)[()])


def _made(leaf: Any) -> Any:
    """Columns become arrays or tensors: the caller gets a batch that can be used as it is."""
    if isinstance(leaf, Objects):
        return leaf.values
    if not isinstance(leaf, Whole):
        return leaf
    return array_as_tensor(leaf.array, leaf.tensor) if leaf.tensor else leaf.array


def _copied(leaf: Any) -> Any:
    return _made(Whole(materialize(leaf), leaf.tensor) if isinstance(leaf, Whole) else leaf)
