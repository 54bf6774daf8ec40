"""Arrays and other memory as a fingerprint has them: by all of their contents, at the speed of memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import xxhash

from stoker.collation.tensors import tensor_as_array, tensor_dtype

_BLOCK_BYTES = 2**24  # of an array that has gaps: copied at once, to be hashed


def array_text(array: Any, tell: Callable[[Any], str]) -> str:
    """An array; of one that maps a file read-only, the file, which is not read. ``tell`` tells what objects are."""
    name = "array" if type(array) in (np.ndarray, np.memmap) else type(array).__name__
    kind = f"{name}({array.dtype}, {array.shape}, "
    file = _mapped_file(array)
    if file is not None:
        return f"{kind}{file})"
    mask = ""
    if isinstance(array, np.ma.MaskedArray):
        mask = f", {tell(np.ma.getmaskarray(array))}, {tell(array.fill_value)}"
    plain = np.asarray(array)
    if plain.dtype.hasobject:
        return f"{kind}{tell(plain.tolist())}{mask})"
    digest = xxhash.xxh3_128()
    _add(digest, plain)
    return f"{kind}#{digest.hexdigest()}{mask})"


def tensor_text(tensor: Any) -> str | None:
    """A tensor of torch; None if it has no memory that numpy could look at (sparse and quantized ones)."""
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        return None
    try:
        array = tensor_as_array(tensor)
    except (TypeError, RuntimeError, KeyError):
        return None
    digest = xxhash.xxh3_128()
    _add(digest, array)
    name = "tensor" if type(tensor).__name__ == "Tensor" else type(tensor).__name__
    return f"{name}({tensor_dtype(tensor)}, {tuple(tensor.shape)}, #{digest.hexdigest()})"


def buffer_text(value: Any) -> str | None:
    """Any other memory: ``bytearray``, ``memoryview``, ``array.array``, ``mmap``, Arrow's buffers. None: it is none."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None
    with view:
        digest = xxhash.xxh3_128(view if view.c_contiguous else view.tobytes()).hexdigest()
        return f"{type(value).__name__}({view.format}, {view.shape}, #{digest})"


def _add(digest: Any, array: Any) -> None:
    """What the array holds, in the order of its indices, wherever it lies in memory."""
    if array.dtype.names is not None:  # one by one, since what lies between two fields is anything
        for name in array.dtype.names:
            _add(digest, array[name])
    elif array.nbytes == 0:
        return
    elif array.flags.c_contiguous or array.nbytes <= _BLOCK_BYTES:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    else:
        rows = max(1, _BLOCK_BYTES // (array.nbytes // len(array)))
        for first in range(0, len(array), rows):
            _add(digest, array[first] if rows == 1 else array[first : first + rows])


def _mapped_file(array: Any) -> str | None:
    """The file that a read-only ``np.memmap`` shows. Others may hold what was never written to the file."""
    if not isinstance(array, np.memmap) or array.filename is None or array.mode != "r":
        return None
    try:
        status = os.stat(array.filename)
    except OSError:  # it was removed
        return None
    file = f"{os.fspath(array.filename)!r} of {status.st_size} bytes, written {status.st_mtime_ns}"
    return f"{file}, from byte {_first_byte(array)} by {array.strides}"


def _first_byte(array: Any) -> int:
    """Where in its file a mapped array begins: parts of one file are arrays of their own."""
    mapped_from = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    address: int = np.frombuffer(array._mmap, np.uint8).ctypes.data
    return int(mapped_from + array.ctypes.data - address)
