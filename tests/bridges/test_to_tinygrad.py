"""to="tinygrad": copies that are finished before the batch's memory can be reused."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.bridges import bridge

tinygrad = pytest.importorskip("tinygrad", reason="tinygrad is not installed")


def test_values_and_types_are_the_same(make_leaf, shape, dtype):
    leaf = make_leaf(shape, dtype)
    tensor = bridge("tinygrad")(leaf)
    assert isinstance(tensor, tinygrad.Tensor)
    assert tensor.shape == shape
    assert tensor.numpy().dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), leaf)


def test_copies_are_finished_when_the_bridge_returns(make_leaf, is_held):
    leaf = make_leaf((1 << 12,), "float32")
    expected, held = leaf.copy(), is_held(leaf)
    tensor = bridge("tinygrad")({"x": leaf})["x"]
    leaf[...] = 0  # what reuse of the memory would do
    del leaf
    np.testing.assert_array_equal(tensor.numpy(), expected)
    assert not held()


def test_types_that_tinygrad_lacks_stay_numpy(foreign_array):
    assert bridge("tinygrad")(foreign_array) is foreign_array


def test_the_other_byte_order_is_understood():
    array = np.arange(6, dtype=">f4")
    np.testing.assert_array_equal(bridge("tinygrad")(array).numpy(), array)


def test_tensors_move_to_the_device_and_other_leaves_stay(make_leaf):
    out = bridge("tinygrad", "PYTHON")([make_leaf((4,), "float32"), ["a", "b"], None])
    assert out[0].device == "PYTHON"
    assert out[1:] == [["a", "b"], None]
