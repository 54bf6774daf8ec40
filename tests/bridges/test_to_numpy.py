"""to="numpy": tensors become arrays over the same memory, numpy stays."""

from __future__ import annotations

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

from stoker.bridges import bridge

Pair = namedtuple("Pair", ["image", "label"])


@dataclasses.dataclass
class Record:
    image: object
    name: object


def test_numpy_strings_and_objects_pass_through():
    image, names, thing = np.zeros((2, 3)), ["a", "b"], object()
    out = bridge("numpy")({"image": image, "names": names, "none": None, "thing": thing})
    assert out["image"] is image
    assert out["names"] == names
    assert out["none"] is None
    assert out["thing"] is thing


def test_tensors_become_views_in_each_kind_of_container():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.arange(6)
    out = bridge("numpy")({"a": [t, (t, Pair(t, 3))], "b": Record(t, "x")})
    leaves = [out["a"][0], out["a"][1][0], out["a"][1][1].image, out["b"].image]
    assert isinstance(out["a"][1][1], Pair)
    assert isinstance(out["b"], Record)
    for leaf in leaves:
        assert isinstance(leaf, np.ndarray)
        assert leaf.ctypes.data == t.data_ptr()


def test_a_view_of_a_tensor_keeps_the_batch_alive(make_leaf, is_held):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    leaf = make_leaf((4,), "float32")
    held = is_held(leaf)
    array = bridge("numpy")(torch.from_numpy(leaf))
    del leaf
    assert held()
    del array
    assert not held()


def test_types_that_numpy_lacks_stay_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.zeros(3, dtype=torch.bfloat16)
    assert bridge("numpy")(tensor) is tensor
