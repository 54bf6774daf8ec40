"""Leaves as a batch has them: arrays over one root array, whose end gives the batch's memory back."""

from __future__ import annotations

import gc
import importlib
import os
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

_INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_COMMON = ["bool", *_INTEGERS, "float16", "float32", "float64"]
_FOREIGN = {
    "bytes": "S3",
    "str": "U3",
    "date": "M8[s]",
    "object": "O",
    "record": [("a", "i4")],
    "long double": "g",
}


def pytest_collection_finish() -> None:
    """Collecting these tests imports four frameworks: keep their objects out of each later gc.collect()."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Framework:
    """How to look at one framework's arrays. ``address`` is None where it always copies."""

    name: str
    array: type
    values: Callable[[Any], np.ndarray]
    address: Callable[[Any], int] | None


def _torch() -> Framework:
    torch = importlib.import_module("torch")
    return Framework("torch", torch.Tensor, lambda tensor: tensor.numpy().copy(), lambda tensor: tensor.data_ptr())


def _jax() -> Framework:
    jax = importlib.import_module("jax")
    return Framework("jax", jax.Array, lambda array: np.array(array), lambda array: array.unsafe_buffer_pointer())


def _tensorflow() -> Framework:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own deprecations, at import
        tf = importlib.import_module("tensorflow")

    def own(tensor: Any) -> np.ndarray:  # its memory itself, as tensor.numpy() need not be
        return np.asarray(memoryview(tensor))

    return Framework("tensorflow", tf.Tensor, lambda tensor: own(tensor).copy(), lambda tensor: own(tensor).ctypes.data)


def _tinygrad() -> Framework:
    tinygrad = importlib.import_module("tinygrad")
    return Framework("tinygrad", tinygrad.Tensor, lambda tensor: tensor.numpy().copy(), None)


_FRAMEWORKS = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow, "tinygrad": _tinygrad}


def _look_at(name: str) -> Framework:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return _FRAMEWORKS[name]()


@pytest.fixture
def installed() -> Callable[[str], Framework]:
    """Looks at a framework by its name, or skips the test."""
    return _look_at


@pytest.fixture(params=_FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    """Each framework that is installed."""
    return _look_at(request.param)


@pytest.fixture(params=["torch", "jax", "tensorflow"])
def sharing_framework(request: pytest.FixtureRequest) -> Framework:
    """Each framework that is installed and promises tensors over the batch's own memory."""
    return _look_at(request.param)


@pytest.fixture(params=_COMMON)
def dtype(request: pytest.FixtureRequest) -> np.dtype:
    """A type that each framework has."""
    return np.dtype(request.param)


@pytest.fixture(params=_FOREIGN.values(), ids=_FOREIGN.keys())
def foreign_array(request: pytest.FixtureRequest) -> np.ndarray:
    """An array of a type that no framework has."""
    return np.zeros(3, request.param)


@pytest.fixture(params=[(3, 4), (5,), (), (0, 3)], ids=str)
def shape(request: pytest.FixtureRequest) -> tuple[int, ...]:
    return request.param


@pytest.fixture
def make_leaf() -> Callable[..., np.ndarray]:
    """Makes counting numbers in memory that is 64-byte aligned, or off by so many bytes."""

    def make(shape: tuple[int, ...], dtype: Any, misaligned_by: int = 0) -> np.ndarray:
        dtype = np.dtype(dtype)
        count = int(np.prod(shape))
        root = np.frombuffer(bytearray(count * dtype.itemsize + 128), np.uint8)
        offset = -root.ctypes.data % 64 + misaligned_by
        leaf = np.ndarray(shape, dtype, buffer=root, offset=offset)
        leaf[...] = np.arange(count).reshape(shape)
        return leaf

    return make


@pytest.fixture
def is_held() -> Callable[[np.ndarray], Callable[[], bool]]:
    """Watches the root array of a leaf: is it still held by anything?"""

    def watch(leaf: np.ndarray) -> Callable[[], bool]:
        root = weakref.ref(leaf.base)
        del leaf

        def held() -> bool:
            gc.collect()
            return root() is not None

        return held

    return watch
