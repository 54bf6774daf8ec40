"""To JAX: arrays over the batch's own memory where JAX can share it, else finished copies.

JAX shares memory that is writable, compact and 64-byte aligned, as batches are. Without ``jax_enable_x64``
it has no 64-bit types: those are cast to 32 bits, exactly as ``jnp.asarray`` does. JAX takes its arrays to be
constant: do not write into a numpy view of a batch that has been bridged.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stoker.bridges.to_numpy import as_native_array
from stoker.collation.tree import map_leaves


def convert(batch: Any, device: Any) -> Any:
    """The batch with each array as a JAX array, on the device or sharding if there is one.

    Arrays of types that JAX lacks (strings, dates, objects, records) stay numpy, and so do masked ones.
    """
    return map_leaves(partial(_convert_leaf, device=_device(device)), batch)


def check(device: Any) -> None:
    """
    Raises:
        ValueError: The device is not there.
    """
    try:
        _device(device)
    except (RuntimeError, ValueError, IndexError) as error:
        known = ", ".join(f"{one.platform}:{one.id}" for one in jax.devices())
        raise ValueError(f"device={device!r} is not available in JAX, which has {known}: {error}") from error


def _device(device: Any) -> Any:
    """``"gpu:1"`` is the second GPU. Devices and shardings of JAX's own pass through."""
    if not isinstance(device, str):
        return device
    platform, _, index = device.partition(":")
    return jax.devices(platform)[int(index or 0)]


def _convert_leaf(leaf: Any, device: Any) -> Any:
    source = as_native_array(leaf)
    if source is None:
        return leaf
    try:
        array = _shared_or_copied(source)
    except TypeError:  # a type that JAX lacks
        return leaf
    moved = array if device is None else jax.device_put(array, device)
    return moved.block_until_ready()  # a copy still under way would read memory that is reused


def _shared_or_copied(source: np.ndarray[Any, Any]) -> jax.Array:
    # A 64-bit array that JAX would cast is copied anyway, and not all versions cast in from_dlpack.
    if jax.dtypes.canonicalize_dtype(source.dtype) == source.dtype:
        try:
            return jnp.from_dlpack(source)
        except (BufferError, RuntimeError, ValueError):
            pass  # read-only, strided, or not aligned: a copy will do
    return jnp.array(source)
