"""To torch: tensors over the batch's own memory, which they keep alive."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from stoker.collate.tree import map_leaves


def convert(batch: Any, device: torch.device | str | int | None) -> Any:
    """The batch with each array as a tensor, on the device if there is one.

    Arrays of types that torch lacks (strings, dates, objects, records) stay numpy.
    """
    return map_leaves(partial(_convert_leaf, device=None if device is None else torch.device(device)), batch)


def _convert_leaf(leaf: Any, device: torch.device | None) -> Any:
    tensor = _tensor(leaf) if isinstance(leaf, np.ndarray) else leaf
    if device is None or not isinstance(tensor, torch.Tensor):
        return tensor
    # CUDA has read ordinary (unpinned) memory by the time an asynchronous copy returns. Other devices
    # do not promise that, and the memory may be reused as soon as the array is gone.
    return tensor.to(device, non_blocking=device.type == "cuda" and not tensor.is_pinned())


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    if not array.flags.writeable:
        array = array.copy()  # torch knows no read-only tensors
    try:
        return torch.from_numpy(array)
    except TypeError:
        return array
    except ValueError:  # negative or odd strides, or the other byte order: torch needs a plain copy
        return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
