"""to="jax": arrays over the batch's own memory where JAX can share it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from stoker import Loader
from stoker.bridges import bridge

jax = pytest.importorskip("jax", reason="jax is not installed")


def test_values_and_types_are_those_of_jnp_asarray(make_leaf, shape, dtype):
    leaf = make_leaf(shape, dtype)
    array = bridge("jax")(leaf)
    assert isinstance(array, jax.Array)
    assert array.dtype == jax.dtypes.canonicalize_dtype(dtype)
    np.testing.assert_array_equal(np.asarray(array), leaf)


def test_aligned_memory_is_shared(make_leaf, dtype):
    leaf = make_leaf((16, 4), dtype)
    array = bridge("jax")(leaf)
    shared = array.dtype == dtype  # without x64, 64-bit types are cast
    assert (array.unsafe_buffer_pointer() == leaf.ctypes.data) is shared


def test_shared_memory_is_kept_alive_and_let_go(make_leaf, is_held):
    leaf = make_leaf((100,), "float32")
    held = is_held(leaf)
    array = bridge("jax")({"x": leaf})["x"]
    del leaf
    assert held()
    del array
    assert not held()


@pytest.mark.parametrize(("dtype", "misaligned_by"), [("int64", 0), ("float32", 16)])
def test_copies_are_finished_when_the_bridge_returns(make_leaf, is_held, dtype, misaligned_by):
    leaf = make_leaf((1 << 16,), dtype, misaligned_by)
    expected, held = leaf.copy(), is_held(leaf)
    array = bridge("jax")(leaf)
    leaf[...] = 0  # what reuse of the memory would do
    del leaf
    np.testing.assert_array_equal(np.asarray(array), expected)
    assert not held()


def test_a_computation_under_way_keeps_the_memory_that_it_reads():
    """JAX returns before it has computed: by then nobody but JAX knows of the batch, and the workers go on."""
    data = np.repeat(np.arange(64, dtype=np.float32), 20_000).reshape(64, 20_000)

    @jax.jit
    def late(batch):
        first = jax.lax.fori_loop(0, 20, lambda _, x: jax.numpy.sin(x) + 1, batch)  # something to be busy with
        return (first * 0 + batch).sum(axis=1)

    with Loader(data, 4, workers=2, prefetch=1, to="jax") as loader:
        results = [late(batch) for _ in range(3) for batch in loader]
    np.testing.assert_array_equal(np.concatenate(results), np.tile(data.sum(axis=1), 3))


def test_with_x64_enabled_64_bit_types_are_kept_and_shared():
    script = (
        "import numpy as np, stoker\n"
        "with stoker.Loader(np.arange(1 << 40, (1 << 40) + 8), 4, workers=2, to='jax') as loader:\n"
        "    for batch in loader:\n"
        "        assert batch.dtype == np.int64\n"
        "        address = batch.unsafe_buffer_pointer()\n"
        "        maps = [line.split()[0].split('-') for line in open('/proc/self/maps') if 'memfd:stoker' in line]\n"
        "        assert any(int(low, 16) <= address < int(high, 16) for low, high in maps)\n"
        "        assert int(batch[0]) >= 1 << 40\n"
    )
    surroundings = os.environ | {"JAX_ENABLE_X64": "1"}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100, env=surroundings)


def test_types_that_jax_lacks_stay_numpy(foreign_array):
    assert bridge("jax")(foreign_array) is foreign_array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="i4")[::-1],
        np.arange(6, dtype="i4")[::2],
        np.arange(6, dtype=">f4"),
        np.broadcast_to(3.0, 4),
    ],
    ids=["reversed", "strided", "big-endian", "read-only"],
)
def test_arrays_that_jax_cannot_share_are_copied(array):
    np.testing.assert_array_equal(np.asarray(bridge("jax")(array)), array)


def test_tensors_cross_and_other_leaves_stay():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    out = bridge("jax")({"t": torch.arange(3), "names": ["a"], "none": None})
    np.testing.assert_array_equal(np.asarray(out["t"]), np.arange(3))
    assert out["names"] == ["a"]
    assert out["none"] is None


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_arrays_move_to_the_device(make_leaf, device):
    array = bridge("jax", device)(make_leaf((4,), "float32"))
    assert array.devices() == {jax.devices("cpu")[0]}


def test_a_device_of_jax_is_taken_as_it_is(make_leaf):
    device = jax.devices()[0]
    assert bridge("jax", device)(make_leaf((4,), "float32")).devices() == {device}
