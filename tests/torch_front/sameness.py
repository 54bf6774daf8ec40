"""Strict equality of two results: classes, dtypes, shapes, layouts, values and the order of keys."""

from __future__ import annotations

import dataclasses
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")


def assert_same(actual, expected, where="result"):
    """Fails with the place of the first difference."""
    assert type(actual) is type(expected), f"{where} is a {type(actual)}, not a {type(expected)}"
    if isinstance(expected, torch.Tensor):
        _same_tensor(actual, expected, where)
    elif isinstance(expected, np.ndarray):
        _same_array(actual, expected, where)
    elif isinstance(expected, Mapping):
        _same_mapping(actual, expected, where)
    elif isinstance(expected, (Sequence, deque)) and not isinstance(expected, (str, bytes, range)):
        assert len(actual) == len(expected), f"{where} has {len(actual)} elements, not {len(expected)}"
        for position, pair in enumerate(zip(actual, expected, strict=True)):
            assert_same(*pair, f"{where}[{position}]")
    elif dataclasses.is_dataclass(expected):
        assert_same(vars(actual), vars(expected), where)
    else:
        assert actual == expected or (actual != actual and expected != expected), f"{where}: {actual} != {expected}"


def _same_tensor(actual, expected, where):
    for name in ["dtype", "shape", "layout", "device", "requires_grad", "is_quantized"]:
        assert getattr(actual, name) == getattr(expected, name), f"{where}.{name} is {getattr(actual, name)}"
    if expected.layout is torch.strided:
        assert actual.stride() == expected.stride(), f"{where}.stride() is {actual.stride()}"
    actual, expected = (_plain(tensor) for tensor in (actual, expected))
    assert torch.equal(actual, expected), f"{where}: {actual} != {expected}"


def _plain(tensor):
    """What can be compared byte by byte, so that a NaN equals itself and each dtype has an equality."""
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    tensor = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _same_array(actual, expected, where):
    assert actual.dtype == expected.dtype, f"{where}.dtype is {actual.dtype}"
    assert actual.shape == expected.shape, f"{where}.shape is {actual.shape}"
    assert actual.tolist() == expected.tolist(), f"{where}: {actual} != {expected}"


def _same_mapping(actual, expected, where):
    assert list(actual) == list(expected), f"{where} has the keys {list(actual)}, not {list(expected)}"
    if isinstance(expected, defaultdict):
        assert actual.default_factory is expected.default_factory, where
    for key in expected:
        assert_same(actual[key], expected[key], f"{where}[{key!r}]")
