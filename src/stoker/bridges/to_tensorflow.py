"""To TensorFlow: tensors over the batch's own memory where it is aligned and contiguous, else copies."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from stoker.bridges.to_numpy import as_native_array
from stoker.collation.tree import map_leaves

_ALIGNMENT_BYTES = 64  # TensorFlow's kernels load whole vectors; DLPack does not check this for it
_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # to numpy they are of no kind


def convert(batch: Any, device: str | None) -> Any:
    """The batch with each array as a tensor, on the device if there is one.

    Strings, dates, objects, records and masked arrays stay as they are.
    """
    return map_leaves(partial(_convert_leaf, device=device), batch)


def check(device: Any) -> None:
    """Looks at physical devices only: to ask for others would end the time in which they can be configured.

    Raises:
        ValueError: The device is not there, or is no device.
    """
    try:
        wanted = tf.DeviceSpec.from_string(device if isinstance(device, str) else device.name)
    except (ValueError, AttributeError) as error:
        raise ValueError(f"device={device!r} is no device of TensorFlow: {error}") from error
    if wanted.device_type is None or wanted.job not in (None, "localhost"):
        return
    found = tf.config.list_physical_devices(wanted.device_type)
    parts = [tf.config.get_logical_device_configuration(one) or [one] for one in found]
    if (wanted.device_index or 0) >= sum(map(len, parts)):
        known = ", ".join(one.name.removeprefix("/physical_device:") for one in tf.config.list_physical_devices())
        raise ValueError(f"device={device!r} is not available in TensorFlow, which has {known}. Pass one of these")


def _convert_leaf(leaf: Any, device: str | None) -> Any:
    source = as_native_array(leaf)
    if source is None or not (source.dtype.kind in "biufc" or source.dtype.name in _NARROW):
        return leaf
    try:
        tensor = _shared_or_copied(source)
    except ValueError:  # a type that TensorFlow lacks (long double)
        return leaf
    if device is None:
        return tensor
    with tf.device(device):
        return tf.identity(tensor)


def _shared_or_copied(source: np.ndarray[Any, Any]) -> Any:
    flags = source.flags
    if flags.c_contiguous and flags.writeable and source.ctypes.data % _ALIGNMENT_BYTES == 0:
        try:
            return tf.experimental.dlpack.from_dlpack(source.__dlpack__())
        except (BufferError, tf.errors.InvalidArgumentError):
            pass  # a type that DLPack lacks
    return tf.constant(source)
