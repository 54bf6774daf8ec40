"""To numpy: tensors become arrays over the same memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from stoker.collate.tree import map_leaves


def convert(batch: Any, device: None = None) -> Any:
    """The batch with each torch tensor as a numpy array. Types that numpy lacks (bfloat16) stay tensors."""
    return map_leaves(as_array, batch)


def as_array(leaf: Any) -> Any:
    """A torch tensor as a numpy view that keeps the tensor alive; any other leaf as it is."""
    torch = sys.modules.get("torch")  # a batch that holds a tensor has imported torch already
    if torch is None or not isinstance(leaf, torch.Tensor):
        return leaf
    try:
        return leaf.numpy(force=True)
    except TypeError:
        return leaf


def as_native_array(leaf: Any) -> np.ndarray[Any, Any] | None:
    """An array or tensor in this machine's byte order, as frameworks need it; None for any other leaf."""
    array = as_array(leaf)
    if not isinstance(array, np.ndarray):
        return None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
