"""To torch: tensors over the batch's own memory, which they keep alive."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import torch

from stoker.bridges.conveyor import InFlight
from stoker.collation.columns import is_plain
from stoker.collation.tensors import is_dense
from stoker.collation.tree import map_leaves

_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # torch has them, and so has numpy where ml_dtypes is


def convert(batch: Any, device: torch.device | str | int | None) -> Any:
    """The batch with each array as a tensor, on the device if there is one.

    Arrays of types that torch lacks (strings, dates, objects, records) stay numpy, and so do masked ones.
    """
    device = None if device is None else torch.device(device)
    if device is not None and device.type == "cuda":
        return _to_cuda(batch, device)
    return map_leaves(partial(_convert_leaf, device=device), batch)


def check(device: torch.device | str | int) -> None:
    """
    Raises:
        ValueError: The device is not there, or is no device.
    """
    try:
        wanted = torch.device(device)
        count = torch.cuda.device_count() if wanted.type == "cuda" and torch.cuda.is_available() else 0
        if wanted.type != "cuda":
            torch.empty(0, device=wanted)  # on a GPU this would take some hundred megabytes of it
    except (RuntimeError, TypeError, AssertionError, ImportError) as error:  # each device has its own
        raise ValueError(f"device={device!r} is not available in torch: {str(error).splitlines()[0]}") from error
    if wanted.type != "cuda" or (wanted.index or 0) < count:
        return
    if torch.version.cuda is None and torch.version.hip is None:
        why = f"torch {torch.__version__} was built without CUDA"
    else:
        why = f"torch sees {count} GPUs (torch.cuda.device_count())"
    raise ValueError(f'device={device!r} is not available in torch: {why}. Pass device="cpu", or one that is')


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
    if not is_dense(leaf):  # sparse, nested, quantized: not all of them can be pinned
        return _moved(leaf, device)
    moved = leaf.detach().pin_memory().to(device, non_blocking=True)
    moved.record_stream(torch.cuda.default_stream(device))  # where the consumer's kernels will read it
    return moved.requires_grad_(leaf.requires_grad)


def _convert_leaf(leaf: Any, device: torch.device | None) -> Any:
    tensor = _tensor(leaf) if isinstance(leaf, np.ndarray) and is_plain(leaf) else leaf
    if device is None or not isinstance(tensor, torch.Tensor):
        return tensor
    return _moved(tensor, device)


def _moved(tensor: torch.Tensor, device: torch.device) -> Any:
    """Blocks: the memory may be reused as soon as the array is gone. What requires a gradient is a leaf there, too."""
    moved = tensor.to(device)
    return moved.detach().requires_grad_() if moved.requires_grad and moved is not tensor else moved


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
