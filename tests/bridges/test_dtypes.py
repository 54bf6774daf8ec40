"""Every dtype, from a dataset in worker processes to each framework: what it becomes, and that its values stay."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import Loader
from stoker.bridges import bridge

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]
NUMPYS_OWN = {"text": "U2", "raw": "S2", "date": "M8[s]", "record": [("a", "i4"), ("b", "f8")], "longdouble": "g"}

# Without jax_enable_x64
TO_JAX = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
NUMPY_IN_TINYGRAD = {"complex64", "complex128"}


class Everything:
    """Sample i has an array of [i, i + 1] in each dtype; beside them a string, and an array of objects."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        numbers = {name: np.array([index, index + 1], name) for name in NUMBERS}
        others = {name: np.zeros(2, dtype) for name, dtype in NUMPYS_OWN.items()}
        return numbers | others | {"name": f"sample {index}", "things": np.array([index, None], object)}


def test_all_dtypes_arrive_from_workers_as_the_table_says(framework):
    with Loader(Everything(), 4, workers=2, to=framework.name) as loader, Loader(Everything(), 4) as oracle:
        for mine, theirs in zip(loader, oracle, strict=True):
            for name in NUMBERS:
                _check_number(mine[name], theirs[name], framework)
            for name in NUMPYS_OWN:
                assert type(mine[name]) is np.ndarray
                assert mine[name].dtype == theirs[name].dtype
                assert mine[name].tolist() == theirs[name].tolist()
            assert mine["name"] == theirs["name"]
            assert [row.tolist() for row in mine["things"]] == [row.tolist() for row in theirs["things"]]


def _check_number(mine, theirs, framework):
    name = theirs.dtype.name
    if framework.name == "tinygrad" and name in NUMPY_IN_TINYGRAD:
        assert type(mine) is np.ndarray
        return
    assert isinstance(mine, framework.array)
    values = framework.values(mine)
    assert values.dtype == (TO_JAX.get(name, name) if framework.name == "jax" else name)
    np.testing.assert_array_equal(values, theirs)


@pytest.fixture
def bfloat16():
    """Of ml_dtypes, which JAX and TensorFlow bring; numpy has none of its own."""
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16


@pytest.mark.parametrize("workers", [0, 2])
def test_bfloat16_arrays_cross(framework, bfloat16, workers):
    data = np.arange(12).astype(bfloat16).reshape(6, 2) / bfloat16(4)
    with Loader(data, 2, workers=workers, to=framework.name) as loader:
        batches = list(loader)
    assert all("bfloat16" in str(batch.dtype) for batch in batches)
    assert [_floats(batch) for batch in batches] == data.astype(float).reshape(3, 2, 2).tolist()


def test_bfloat16_tensors_cross_as_well(framework, bfloat16):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for tensor in [torch.arange(6).to(torch.bfloat16), torch.tensor(2, dtype=torch.bfloat16)]:
        made = bridge(framework.name)(tensor)
        assert isinstance(made, framework.array)
        assert "bfloat16" in str(made.dtype)
        assert _floats(made) == tensor.tolist()


def test_bfloat16_is_shared_with_torch_however_it_lies(bfloat16):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    array = np.arange(12).astype(bfloat16)
    assert bridge("torch")(array[2:]).data_ptr() == array[2:].ctypes.data
    assert bridge("torch")(array[::-1]).tolist() == list(range(11, -1, -1))
    assert bridge("torch")(np.broadcast_to(array[3], 2)).dtype == torch.bfloat16


def _floats(array):
    """As nested lists of Python floats, whatever the framework."""
    if hasattr(array, "tolist") and not hasattr(array, "realize"):
        return array.tolist()
    if hasattr(array, "realize"):  # tinygrad: numpy() knows no bfloat16
        return array.float().numpy().tolist()
    return array.numpy().astype(float).tolist()
