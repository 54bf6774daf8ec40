"""To torch: tensors over the batch's own memory, which they keep alive."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import torch

from stoker.bridges.conveyor import InFlight
from stoker.collate.columns import is_plain
from stoker.collate.tree import map_leaves

_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # torch has them, and so has numpy where ml_dtypes is


def convert(batch: Any, device: torch.device | str | int | None) -> Any:
    """The batch with each array as a tensor, on the device if there is one.

    Arrays of types that torch lacks (strings, dates, objects, records) stay numpy, and so do masked ones.
    """
    device = None if device is None else torch.device(device)
    if device is not None and device.type == "cuda":
        return _to_cuda(batch, device)
    return map_leaves(partial(_convert_leaf, device=device), batch)


def _to_cuda(batch: Any, device: torch.device) -> InFlight:
    """On a stream of its own, from pinned memory, so that it goes on beside the consumer's kernels."""
    stream = _side_stream(device)
    tensors = map_leaves(partial(_convert_leaf, device=None), batch)
    with torch.cuda.stream(stream):
        moved = map_leaves(partial(_copy_pinned, device=device), tensors)
        copied = stream.record_event()
    return InFlight(moved, finish=copied.synchronize)


@cache
def _side_stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device)


def _copy_pinned(leaf: Any, device: torch.device) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    moved = leaf.pin_memory().to(device, non_blocking=True)
    moved.record_stream(torch.cuda.default_stream(device))  # where the consumer's kernels will read it
    return moved


def _convert_leaf(leaf: Any, device: torch.device | None) -> Any:
    tensor = _tensor(leaf) if isinstance(leaf, np.ndarray) and is_plain(leaf) else leaf
    if device is None or not isinstance(tensor, torch.Tensor):
        return tensor
    return tensor.to(device)  # blocks: the memory may be reused as soon as the array is gone


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    if not array.flags.writeable:
        array = array.copy()  # torch knows no read-only tensors
    try:
        return torch.from_numpy(array)
    except TypeError:
        if array.dtype.name not in _NARROW:
            return array
        return _tensor(array.view(f"u{array.itemsize}")).view(getattr(torch, array.dtype.name))
    except ValueError:  # negative or odd strides, or the other byte order: torch needs a plain copy
        return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
