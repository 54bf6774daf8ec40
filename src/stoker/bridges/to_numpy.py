"""To numpy: tensors become arrays over the same memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from stoker.collation.columns import is_plain
from stoker.collation.tensors import dtype_name, is_tensor, tensor_as_array
from stoker.collation.tree import map_leaves


def convert(batch: Any, device: None = None) -> Any:
    """The batch with each torch tensor as a numpy array.

    Types that numpy lacks (bfloat16) stay tensors, and so do sparse, nested and quantized tensors.
    """
    return map_leaves(as_array, batch)


def as_array(leaf: Any) -> Any:
    """A torch tensor as a numpy view that keeps the tensor alive; any other leaf as it is."""
    torch = sys.modules.get("torch")  # a batch that holds a tensor has imported torch already
    if torch is None or not isinstance(leaf, torch.Tensor):
        return leaf
    try:
        return leaf.numpy(force=True)
    except (TypeError, RuntimeError):  # a type that numpy lacks; or it is sparse, nested, quantized, or meta
        return leaf


def as_native_array(leaf: Any) -> np.ndarray[Any, Any] | None:
    """An array or tensor in this machine's byte order, as frameworks need it; None for any other leaf.

    Masked arrays are other leaves: no framework has masks, and none should be lost on the way.
    """
    array = as_array(leaf)
    if is_tensor(array):
        array = _narrow_array(array)
    if not isinstance(array, np.ndarray) or not is_plain(array):
        return None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _narrow_array(tensor: Any) -> np.ndarray[Any, Any] | None:
    """A tensor of bfloat16 or float8 as an array over the same memory. The types come with JAX and TensorFlow."""
    try:
        import ml_dtypes

        array: np.ndarray[Any, Any] = tensor_as_array(tensor).view(getattr(ml_dtypes, dtype_name(tensor)))
    except (ImportError, AttributeError, TypeError):  # none is installed, has the type, or holds a sparse tensor
        return None
    return array
