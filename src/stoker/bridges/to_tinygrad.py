"""To tinygrad: realized copies, since tinygrad owns the memory of its tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from tinygrad import Device, Tensor, dtypes

from stoker.bridges.to_numpy import as_native_array
from stoker.collation.tree import map_leaves

_INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_TYPES = frozenset(["bool", *_INTEGERS, "float16", "bfloat16", "float32", "float64"])


def convert(batch: Any, device: str | None) -> Any:
    """The batch with each array as a tensor, on the device if there is one.

    Arrays of types that tinygrad lacks (strings, dates, objects, records, complex numbers) stay numpy, and so do
    masked ones.
    """
    return map_leaves(partial(_convert_leaf, device=device), batch)


def check(device: str | tuple[str, ...]) -> None:
    """
    Raises:
        ValueError: The device cannot be opened, or is none.
    """
    for one in device if isinstance(device, tuple) else (device,):
        try:
            Device[Device.canonicalize(one)]
        except Exception as error:  # each device raises its own
            words = str(error).splitlines() or [type(error).__name__]
            raise ValueError(f"device={one!r} is not available in tinygrad: {words[0]}. Pass another") from error


def _convert_leaf(leaf: Any, device: str | None) -> Any:
    source = as_native_array(leaf)
    if source is None or source.dtype.name not in _TYPES:
        return leaf
    is_narrow = source.dtype.name == "bfloat16"
    # Of a 0-d array tinygrad would make a constant, on no device; so it crosses as an array of one.
    tensor = Tensor(np.atleast_1d(source.view(np.uint16) if is_narrow else source), device=device)
    if is_narrow:
        tensor = tensor.bitcast(dtypes.bfloat16)
    tensor = tensor.realize()  # now: a lazy tensor would read memory that is reused
    return tensor if source.ndim else tensor.reshape(())
