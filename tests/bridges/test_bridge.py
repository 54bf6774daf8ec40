"""What `to=` and `device=` accept, and what they answer at once when they do not."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.util import find_spec

import pytest

from stoker.bridges import Bridge, bridge, goes_elsewhere


def test_none_leaves_batches_as_they_are():
    assert bridge(None, None) is None


def test_a_callable_takes_the_whole_batch():
    assert bridge(sorted, None) is sorted


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'numpy', 'torch', 'jax', 'tensorflow', 'tinygrad'"):
        bridge("pytorch", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", [None, "numpy"])
def test_a_device_needs_a_framework(to):
    with pytest.raises(ValueError, match='write to="torch"'):
        bridge(to, "cuda")


def test_a_device_beside_a_callable_is_refused():
    with pytest.raises(ValueError, match="in the callable itself"):
        bridge(sorted, "cuda")


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow", "tinygrad"])
def test_a_missing_framework_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ImportError, match=rf"pip install stoker\[{name}\]"):
        bridge(name, None)


@pytest.mark.parametrize("device", [None, "cpu", "cpu:0", "CPU", "/CPU:0", "/device:CPU:0", "TFRT_CPU_0"])
def test_nothing_is_moved_ahead_to_where_it_is_already(device):
    assert not goes_elsewhere(device, None)
    assert goes_elsewhere(device, sorted)


@pytest.mark.parametrize("device", ["cuda", "meta", "gpu:1", "/device:GPU:0", 0])
def test_any_other_device_is_elsewhere(device):
    assert goes_elsewhere(device, None)


def test_a_bridge_pickles():
    assert pickle.loads(pickle.dumps(Bridge("torch", "cuda:1"))) == Bridge("torch", "cuda:1")


SCRIPT = """
import sys
import stoker

class Workers:
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return "NAME" in sys.modules

loader = stoker.Loader(Workers(), 2, workers=2, to="NAME", device=DEVICE)
assert "NAME" not in sys.modules, "imported by the loader"
batch = next(iter(loader))
assert "NAME" in sys.modules
assert type(batch).__module__.split(".")[0] in ("NAME", "jaxlib"), type(batch)
assert batch.numpy().tolist() == [False, False] if "NAME" != "jax" else not batch.any(), "imported by a worker"
others = {"torch", "jax", "tensorflow", "tinygrad"} - {"NAME"}
if "NAME" == "tensorflow":
    others.remove("jax")  # it looks for JAX itself
assert not others & sys.modules.keys(), others & sys.modules.keys()
loader.close()
"""


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow", "tinygrad"])
def test_a_framework_is_imported_with_the_first_batch_and_by_the_consumer_only(name):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    device = "'PYTHON'" if name == "tinygrad" else "None"
    script = SCRIPT.replace("NAME", name).replace("DEVICE", device)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)
