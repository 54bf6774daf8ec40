"""Leaves as a batch has them: arrays over one root array, whose end gives the batch's memory back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

_COMMON = ["bool", "uint8", "int8", "uint16", "uint32", "int32", "int64", "float16", "float32", "float64"]
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
