"""``stoker.convert``: a batch that is there already, in the arrays of a framework, as ``Loader(to=...)`` gives it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import stoker
from stoker import Loader
from tests.datasets import Forest, Pair, Record

ARRAYS = {"torch": "Tensor", "jax": "Array", "tensorflow": "Tensor", "tinygrad": "Tensor"}


@pytest.fixture(params=ARRAYS)
def framework(request):
    """The name of one that is installed, and the class of its arrays."""
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow's own deprecations, at import
        return request.param, getattr(importlib.import_module(request.param), ARRAYS[request.param])


def test_arrays_become_the_frameworks_own_and_all_else_stays(framework):
    name, kind = framework
    batch = {"x": np.arange(4, dtype=np.float32), "pair": Pair(np.ones(2, np.int32), "text"), "names": ["a", None]}
    got = stoker.convert(batch, to=name)
    assert isinstance(got["x"], kind)
    assert isinstance(got["pair"].left, kind)
    assert np.asarray(got["x"].numpy() if hasattr(got["x"], "numpy") else got["x"]).tolist() == [0, 1, 2, 3]
    assert got["pair"].right == "text"
    assert got["names"] == ["a", None]


def test_the_types_are_those_that_a_loader_gives(framework):
    name, _ = framework
    with Loader(Forest(4), 4, to=name) as loader, Loader(Forest(4), 4) as plain:
        (expected,), (batch,) = loader, plain
        leaves, others = [], []
        stoker.map_leaves(lambda leaf: leaves.append(type(leaf)), stoker.convert(batch, to=name))
        stoker.map_leaves(lambda leaf: others.append(type(leaf)), expected)
    assert leaves == others


def test_a_device_is_where_the_arrays_are_put(framework):
    name, kind = framework
    device = {"torch": "meta", "jax": "cpu:0", "tensorflow": "/device:CPU:0", "tinygrad": "PYTHON"}[name]
    got = stoker.convert([np.ones(3, np.float32)], to=name, device=device)
    assert isinstance(got[0], kind)
    if name == "torch":
        assert got[0].device.type == "meta"


def test_a_device_that_is_not_there_is_an_error(framework):
    name, _ = framework
    with pytest.raises(ValueError, match="device="):
        stoker.convert(np.ones(3), to=name, device={"tensorflow": "GPU:77"}.get(name, "cuda:77"))


def test_to_numpy_tensors_become_arrays():
    torch = pytest.importorskip("torch")
    got = stoker.convert(Record(torch.arange(3), "label"), to="numpy")
    assert type(got) is Record
    assert isinstance(got.image, np.ndarray)


def test_to_arrow_a_dict_of_columns_becomes_a_record_batch():
    pytest.importorskip("pyarrow")
    assert stoker.convert({"x": np.arange(3), "name": ["a", "b", "c"]}, to="arrow").num_rows == 3


@pytest.mark.parametrize("wrong", [None, 3, len], ids=repr)
def test_something_else_than_a_name_is_an_error(wrong):
    with pytest.raises(TypeError, match=r"pass the name of a framework, as in to=\"torch\""):
        stoker.convert(np.ones(3), to=wrong)


def test_an_unknown_name_is_an_error_that_lists_those_that_are_known():
    with pytest.raises(ValueError, match=r"to='pandas' is not known.*'torch', 'jax'"):
        stoker.convert(np.ones(3), to="pandas")


def test_numpy_has_no_device():
    with pytest.raises(ValueError, match="numpy batches have no device='cuda'"):
        stoker.convert(np.ones(3), to="numpy", device="cuda")


def test_no_framework_is_imported_but_the_one_that_is_asked_for():
    script = (
        "import sys, numpy as np, stoker\n"
        "stoker.map_leaves(len, stoker.collate([np.ones(2)] * 2)), stoker.convert(np.ones(2), to='numpy')\n"
        f"assert not [name for name in {sorted(ARRAYS)} if name in sys.modules]\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
