"""Torch tensors as numpy arrays and back, without importing torch unless the user has."""

from __future__ import annotations

import sys
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

_GRAD = "requires_grad"
_AXES = "axes="
_GRAD_OF = attrgetter(_GRAD)


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_dense(tensor: Any) -> bool:
    """Whether a tensor is nothing but its elements, so that an array can hold it.

    Quantized tensors (which have a scale), sparse, nested and meta ones are not, nor those of a class of their own.
    """
    return type(tensor) is sys.modules["torch"].Tensor and _has_only_elements(tensor)


def is_plain_tensor(value: Any) -> bool:
    """Whether a tensor is all there in this process's memory, and of no class of its own."""
    return is_dense(value) and value.is_cpu and not value.requires_grad


def _has_only_elements(tensor: Any) -> bool:
    is_strided = tensor.layout is sys.modules["torch"].strided
    return is_strided and not (tensor.is_quantized or tensor.is_nested or tensor.is_meta)


def tensor_as_array(tensor: Any) -> np.ndarray[Any, Any]:
    """The tensor's memory as a numpy array; for types that numpy lacks (bfloat16, ...), as raw integers.

    Raises:
        TypeError: It is more than its elements: quantized, sparse, nested or meta.
    """
    try:
        array: np.ndarray[Any, Any] = tensor.numpy()
        return array
    except (TypeError, RuntimeError):
        if not _has_only_elements(tensor):
            raise TypeError(f"{described(tensor)} is more than an array can hold") from None
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        array = plain.numpy()
    except TypeError:
        torch = sys.modules["torch"]
        raw = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[plain.element_size()]
        array = plain.view(raw).numpy()
    return array


@lru_cache(maxsize=64)
def array_dtype(dtype: Any) -> np.dtype[Any]:
    """The type of ``tensor_as_array`` for tensors of a torch dtype."""
    found: np.dtype[Any] = tensor_as_array(sys.modules["torch"].empty(0, dtype=dtype)).dtype
    return found


def are_simple(tensors: list[Any]) -> bool:
    """Whether they are plain tensors of one dtype that ask for no gradients, so that torch can stack them in memory.

    That there is none among them that torch cannot stack, it finds out by itself; also that none asks for gradients,
    since those it does not write into memory that it is given. Only numbers are not stacked by torch.
    """
    torch = sys.modules["torch"]
    first = tensors[0]
    return (
        set(map(type, tensors)) == {torch.Tensor}
        and first.is_cpu
        and _has_only_elements(first)
        and [tensor.dtype for tensor in tensors].count(first.dtype) == len(tensors)
        and not first.requires_grad
        and (first.ndim > 0 or not torch.is_grad_enabled() or not any(map(_GRAD_OF, tensors)))
    )


def write_scalars(tensors: list[Any], out: np.ndarray[Any, Any]) -> bool:
    """Fills ``out`` with tensors that have no axes: as numbers, at twice the speed of torch's stack.

    False if it cannot be done: one of them has axes, or their type is none of Python's.
    """
    is_raw = out.dtype.name != dtype_name(tensors[0])  # bfloat16 and others, which numpy lacks
    if is_raw or out.dtype.kind not in "iuf":
        return False
    try:
        # One that has axes gives a list, which is no number, but would be true or false.
        out[...] = np.fromiter(map(sys.modules["torch"].Tensor.tolist, tensors), out.dtype, len(tensors))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return False
    return True


def tensors_as_arrays(tensors: list[Any]) -> tuple[list[np.ndarray[Any, Any]], str] | None:
    """The memory of each, and what to give ``array_as_tensor`` for them all.

    None if one of them is more than an array can hold, so that torch itself must stack them.
    """
    torch = sys.modules["torch"]
    if set(map(type, tensors)) == {torch.Tensor}:
        try:
            return [tensor.numpy() for tensor in tensors], dtype_name(tensors[0])  # the common case
        except (TypeError, RuntimeError):
            pass
    elif not all(type(tensor) is torch.Tensor or _stacks_to_plain(tensor) for tensor in tensors):
        return None
    if not all(map(_has_only_elements, tensors)):
        return None
    learning = next((tensor for tensor in tensors if tensor.requires_grad), tensors[0])
    return [tensor_as_array(tensor) for tensor in tensors], tensor_dtype(learning)


def _stacks_to_plain(tensor: Any) -> bool:
    """Whether torch's own stack would not keep the tensor's class, as with torchvision's images, and parameters."""
    torch = sys.modules["torch"]
    try:
        return type(torch.stack([tensor])) is torch.Tensor
    except Exception:  # whatever the class may raise
        return False


def described(tensor: Any) -> str:
    """What kind of tensor it is, for messages: ``a tensor of layout torch.sparse_csr``."""
    torch = sys.modules["torch"]
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.is_quantized:
        return f"a quantized tensor ({tensor.dtype})"
    if tensor.layout is not torch.strided:
        return f"a tensor of layout {tensor.layout}"
    if tensor.is_meta:
        return "a meta tensor"
    return f"a tensor of class {type(tensor).__name__}"


def quantizer(tensor: Any) -> Any:
    """What the integers of a quantized tensor mean; None for other tensors, and where each channel has its own."""
    torch = sys.modules["torch"]
    if not tensor.is_quantized or tensor.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return None
    return tensor.qscheme(), tensor.q_scale(), tensor.q_zero_point()


def tensor_dtype(tensor: Any) -> str:
    """What to give ``array_as_tensor``: ``bfloat16``, or ``float32 requires_grad``."""
    return f"{dtype_name(tensor)} {_GRAD}" if tensor.requires_grad else dtype_name(tensor)


def laid_out(tensor: Any) -> tuple[Any, str]:
    """A dense tensor as it lies in memory, and what to give ``array_as_tensor`` to have its axes in their order again.

    A tensor in the format ``channels_last`` is one without gaps, only that its axes are in another order; so is a
    transposed one. One that has gaps, or overlaps itself, is taken as it looks.
    """
    kind = tensor_dtype(tensor)
    if tensor.is_contiguous() or not tensor.numel():
        return tensor, kind
    order = sorted(range(tensor.ndim), key=lambda axis: (-tensor.stride(axis), axis))
    in_memory = tensor.permute(order)
    if not in_memory.is_contiguous():
        return tensor, kind
    return in_memory, f"{kind} {_AXES}{','.join(str(order.index(axis)) for axis in range(tensor.ndim))}"


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def array_as_tensor(array: np.ndarray[Any, Any], dtype: str) -> Any:
    """The array's own memory as a tensor. Imports torch: the sample held a tensor, so it is installed."""
    wanted, axes, asks_for_gradients = _kind(dtype)
    tensor = sys.modules["torch"].from_numpy(array)
    if not array.size:
        tensor = tensor.new_empty(array.shape)  # with the strides that torch has for it, and not numpy's
    if tensor.dtype is not wanted:
        tensor = tensor.view(wanted)
    if axes:
        tensor = tensor.permute(axes)
    return tensor.requires_grad_() if asks_for_gradients else tensor


@lru_cache(maxsize=256)
def _kind(dtype: str) -> tuple[Any, tuple[int, ...], bool]:
    """Torch's dtype, the order of the axes, if it is not that in memory, and whether it asks for gradients."""
    import torch

    name, *more = dtype.split(" ")
    is_permuted = bool(more) and more[-1].startswith(_AXES)
    axes = tuple(map(int, more[-1].removeprefix(_AXES).split(","))) if is_permuted else ()
    return getattr(torch, name), axes, _GRAD in more


def raw_value(value: Any, dtype: str) -> Any:
    """A number as ``tensor_as_array`` has it in a tensor of that type; None if that is as in any array of integers."""
    torch = sys.modules["torch"]
    kind = getattr(torch, dtype.partition(" ")[0])
    if not (kind.is_floating_point or kind.is_complex):
        return None
    return tensor_as_array(torch.tensor(value, dtype=kind))[()]


def copied(leaf: Any) -> Any:
    """In memory of its own; what is no array stays as it is."""
    if is_tensor(leaf):
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return leaf.copy() if hasattr(leaf, "ctypes") else leaf
