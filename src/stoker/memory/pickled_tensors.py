"""Tensors within objects that are pickled: only what they show travels, as the bytes of an array.

Torch itself would pickle the whole memory that a tensor is a view of, a row of a dataset's tensor with all other rows,
as a file of its own format: for 256 rows of 4 MB, a gigabyte and a second.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from typing import Any

import numpy as np

from stoker.collation.tensors import array_as_tensor, is_plain_tensor, laid_out, tensor_as_array

_BY_TORCH = b"_rebuild_tensor_v2"  # the function that a tensor's pickle names, whichever way it is pickled


def holds_tensors(pickled: bytes) -> bool:
    """Whether torch has pickled tensors in it, or something is called like its function."""
    return _BY_TORCH in pickled


def dump_tensors(value: Any, protocol: int) -> bytes:
    """``value`` with the tensors in it. Torch must be loaded."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol)
    pickler.dispatch_table = copyreg.dispatch_table | {sys.modules["torch"].Tensor: _reduced}
    pickler.dump(value)
    return stream.getvalue()


def _reduced(tensor: Any) -> Any:
    if not is_plain_tensor(tensor) or tensor.__dict__ or tensor.is_conj() or tensor.is_neg():
        return tensor.__reduce_ex__(2)  # as torch does it
    in_memory, kind = laid_out(tensor)
    return _rebuilt, (np.ascontiguousarray(tensor_as_array(in_memory)), tuple(in_memory.shape), kind)


def _rebuilt(array: np.ndarray[Any, Any], shape: tuple[int, ...], kind: str) -> Any:
    """A tensor in memory of torch's own, so that it can be resized."""
    import torch  # the consumer may not have it yet

    return array_as_tensor(array.reshape(shape), kind).clone(memory_format=torch.preserve_format)
