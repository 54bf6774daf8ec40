"""Torch tensors as numpy arrays and back, without importing torch unless the user has."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_plain_tensor(value: Any) -> bool:
    """Whether a tensor is all there in this process's memory, and of no class of its own."""
    torch = sys.modules["torch"]
    plain = type(value) is torch.Tensor and value.layout is torch.strided and value.device.type == "cpu"
    return plain and not (value.is_quantized or value.requires_grad)


def tensor_as_array(tensor: Any) -> np.ndarray[Any, Any]:
    """The tensor's memory as a numpy array; for types that numpy lacks (bfloat16, ...), as raw integers."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        array: np.ndarray[Any, Any] = plain.numpy()
    except TypeError:
        torch = sys.modules["torch"]
        raw = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[plain.element_size()]
        array = plain.view(raw).numpy()
    return array


def tensor_dtype(tensor: Any) -> str:
    """The name to give ``array_as_tensor``: ``bfloat16``."""
    return str(tensor.dtype).removeprefix("torch.")


def array_as_tensor(array: np.ndarray[Any, Any], dtype: str) -> Any:
    """The array's own memory as a tensor. Imports torch: the sample held a tensor, so it is installed."""
    import torch

    tensor = torch.from_numpy(array)
    wanted = getattr(torch, dtype)
    return tensor if tensor.dtype == wanted else tensor.view(wanted)


def copied(leaf: Any) -> Any:
    """In memory of its own; what is no array stays as it is."""
    if hasattr(leaf, "clone"):
        return leaf.clone()
    return leaf.copy() if hasattr(leaf, "ctypes") else leaf
