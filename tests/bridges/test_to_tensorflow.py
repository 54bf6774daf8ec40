"""to="tensorflow": tensors over the batch's own memory where it is aligned and contiguous."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

from stoker.bridges import bridge

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own deprecations, at import
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")


def is_shared(leaf: np.ndarray, tensor) -> bool:
    """Does a write through the array show in the tensor?"""
    before = tensor.numpy().copy()
    leaf[...] = before == 0
    return bool((tensor.numpy() != before).any())


def test_values_and_types_are_the_same(make_leaf, shape, dtype):
    leaf = make_leaf(shape, dtype)
    tensor = bridge("tensorflow")(leaf)
    assert isinstance(tensor, tf.Tensor)
    assert tensor.dtype == tf.as_dtype(dtype)
    np.testing.assert_array_equal(tensor.numpy(), leaf)


def test_aligned_memory_is_shared(make_leaf, dtype):
    leaf = make_leaf((16, 4), dtype)
    assert is_shared(leaf, bridge("tensorflow")(leaf))


def test_misaligned_memory_is_copied(make_leaf, is_held):
    leaf = make_leaf((16, 4), "float32", misaligned_by=16)
    held = is_held(leaf)
    tensor = bridge("tensorflow")(leaf)
    assert not is_shared(leaf, tensor)
    del leaf
    assert not held()


def test_shared_memory_is_kept_alive_and_let_go(make_leaf, is_held):
    leaf = make_leaf((100,), "float32")
    held = is_held(leaf)
    tensor = bridge("tensorflow")({"x": leaf})["x"]
    del leaf
    assert held()
    del tensor
    assert not held()


def test_types_that_tensorflow_lacks_stay_as_they_are(foreign_array):
    assert bridge("tensorflow")(foreign_array) is foreign_array


@pytest.mark.parametrize(
    "array",
    [np.arange(6)[::-1], np.arange(6)[::2], np.arange(6, dtype=">f4"), np.broadcast_to(3.0, 4)],
    ids=["reversed", "strided", "big-endian", "read-only"],
)
def test_arrays_that_tensorflow_cannot_share_are_copied(array):
    np.testing.assert_array_equal(bridge("tensorflow")(array).numpy(), array)


def test_tensors_move_to_the_device_and_other_leaves_stay(make_leaf):
    out = bridge("tensorflow", "cpu:0")([make_leaf((4,), "float32"), ["a", "b"], None])
    assert out[0].device.endswith("CPU:0")
    assert out[1:] == [["a", "b"], None]
