"""A collation that fills ragged arrays up to the longest of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker.collate.columns import Array, Column, Objects, Whole, materialize
from stoker.collate.default import Collation
from stoker.collate.tensors import array_as_tensor
from stoker.collate.tree import map_leaves
from stoker.errors import CollateError


def pad(samples: Sequence[Any], *, value: Any = 0) -> Any:
    """Collates samples whose arrays differ in size: each is filled up with ``value`` at its ends.

    Every axis is as long as the longest sample's; all else is as in the default collation. Put the true length into
    the sample if the model needs it.

    Example:
        >>> import numpy as np, stoker
        >>> stoker.pad([np.array([1, 2, 3]), np.array([4])], value=-1)
        array([[ 1,  2,  3],
               [ 4, -1, -1]])
        >>> # stoker.Loader(dataset, 32, collate=stoker.pad)
    """

    def padded(arrays: list[Array], path: str, indices: Sequence[int]) -> Column:
        return Whole(_fill(arrays, value, path, indices))

    return map_leaves(_made, Collation(padded)(samples))


def _fill(arrays: list[Array], value: Any, path: str, indices: Sequence[int]) -> Array:
    dims = [array.ndim for array in arrays]
    if len(set(dims)) > 1:
        other = next(k for k, ndim in enumerate(dims) if ndim != dims[0])
        raise CollateError(
            f"{path} has {dims[0]} axes in sample {indices[0]} and {dims[other]} in sample {indices[other]}: "
            f"pad fills axes up but can't add one; reshape in the dataset"
        )
    longest = np.max([array.shape for array in arrays], axis=0) if dims[0] else ()
    out = np.full((len(arrays), *longest), value, np.result_type(*[array.dtype for array in arrays]))
    for row, array in enumerate(arrays):
        corner: tuple[Any, ...] = (row, *[slice(size) for size in array.shape])
        out[corner] = array
    return out


def _made(leaf: Any) -> Any:
    """Columns become arrays or tensors: the caller gets a batch that can be used as it is."""
    if isinstance(leaf, Objects):
        return leaf.values
    if not isinstance(leaf, Whole):
        return leaf
    array = materialize(leaf)
    return array_as_tensor(array, leaf.tensor) if leaf.tensor else array
