"""to="torch": tensors over the batch's own memory."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.bridges import bridge

torch = pytest.importorskip("torch", reason="torch is not installed")


def test_values_types_and_memory_are_the_same(make_leaf, shape, dtype):
    leaf = make_leaf(shape, dtype)
    tensor = bridge("torch")(leaf)
    assert tensor.dtype == getattr(torch, dtype.name)
    np.testing.assert_array_equal(tensor.numpy(), leaf)
    if leaf.size:
        assert tensor.data_ptr() == leaf.ctypes.data


def test_a_tensor_keeps_the_batch_alive_and_lets_it_go(make_leaf, is_held):
    leaf = make_leaf((100,), "float32")
    held = is_held(leaf)
    tensor = bridge("torch")({"x": leaf})["x"]
    part = tensor[10:20]
    del leaf, tensor
    assert held()
    del part
    assert not held()


def test_types_that_torch_lacks_stay_numpy(foreign_array):
    assert bridge("torch")(foreign_array) is foreign_array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6)[::-1],
        np.arange(6, dtype=">f4"),
        np.ones(3, [("a", "i1"), ("b", "f4")])["b"],
        np.broadcast_to(3.0, 4),
    ],
    ids=["reversed", "big-endian", "a record's field", "read-only"],
)
def test_arrays_that_torch_cannot_share_are_copied(array):
    tensor = bridge("torch")(array)
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_tensors_and_other_leaves_stay_as_they_are():
    tensor = torch.zeros(3)
    out = bridge("torch")({"t": tensor, "names": ["a", "b"], "none": None})
    assert out["t"] is tensor
    assert out["names"] == ["a", "b"]
    assert out["none"] is None


def test_the_meta_device_lets_the_memory_go_at_once(make_leaf, is_held):
    leaf = make_leaf((4, 3), "int16")
    held = is_held(leaf)
    tensor = bridge("torch", "meta")({"x": leaf})["x"]
    del leaf
    assert (tensor.device.type, tensor.dtype, tuple(tensor.shape)) == ("meta", torch.int16, (4, 3))
    assert not held()


@pytest.mark.parametrize("device", ["meta", torch.device("meta")], ids=str)
def test_arrays_and_tensors_move_to_the_device(make_leaf, device):
    out = bridge("torch", device)([make_leaf((2,), "float32"), torch.zeros(3), "name"])
    assert [leaf.device.type for leaf in out[:2]] == ["meta", "meta"]
    assert out[2] == "name"
