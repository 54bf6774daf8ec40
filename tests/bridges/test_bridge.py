"""What `to=` and `device=` accept, and what they answer at once when they do not."""

from __future__ import annotations

import importlib
import pickle
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

import stoker.bridges
from stoker import Loader, stream
from stoker.bridges import Bridge, bridge, goes_elsewhere


def test_none_leaves_batches_as_they_are():
    assert bridge(None, None) is None


def test_a_callable_takes_the_whole_batch():
    assert bridge(sorted, None) is sorted


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'numpy', 'torch', 'jax', 'tensorflow', 'tinygrad', 'arrow'"):
        bridge("pytorch", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("to", [None, "numpy", "arrow"])
def test_a_device_needs_a_framework(to):
    with pytest.raises(ValueError, match='pass to="torch"'):
        bridge(to, "cuda")


def test_a_device_beside_a_callable_is_refused():
    with pytest.raises(ValueError, match="in the callable itself"):
        bridge(sorted, "cuda")


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow", "tinygrad"])
def test_a_missing_framework_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ImportError, match=rf"pip install stoker\[{name}\]"):
        bridge(name, None)


def test_missing_pyarrow_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"to='arrow' needs pyarrow.*pip install stoker\[files\]"):
        Loader([{"x": 1}], to="arrow")


@pytest.mark.parametrize("device", [None, "cpu", "cpu:0", "CPU", "/CPU:0", "/device:CPU:0", "TFRT_CPU_0"])
def test_nothing_is_moved_ahead_to_where_it_is_already(device):
    assert not goes_elsewhere(device, None)
    assert goes_elsewhere(device, sorted)


@pytest.mark.parametrize("device", ["cuda", "meta", "gpu:1", "/device:GPU:0", 0])
def test_any_other_device_is_elsewhere(device):
    assert goes_elsewhere(device, None)


ABSENT = {
    "torch": ["cuda:99", 99, "nowhere", 3.5],
    "jax": ["nowhere", "cpu:99"],
    "tensorflow": ["GPU:99", "/device:GPU:99", "nowhere", 3],
    "tinygrad": ["NOWHERE", ("PYTHON", "NOWHERE"), 3],
}
PRESENT = {"torch": ["cpu", "meta"], "jax": ["cpu", "cpu:0"], "tensorflow": ["CPU", "/CPU:0"], "tinygrad": ["PYTHON"]}


@pytest.mark.parametrize(("name", "device"), [(name, device) for name, all in ABSENT.items() for device in all])
def test_a_device_that_is_not_there_is_an_error_at_once(installed, name, device):
    installed(name)
    with pytest.raises(ValueError, match="device="):
        Loader([1], to=name, device=device)


@pytest.mark.parametrize(("name", "device"), [(name, device) for name, all in PRESENT.items() for device in all])
def test_a_device_that_is_there_is_fine(installed, name, device):
    installed(name)
    assert bridge(name, device) == Bridge(name, device)


def test_without_cuda_the_constructor_says_so(installed, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ValueError, match=r"device='cuda' .* built without CUDA. Pass device=\"cpu\""):
        stream(abs, [1], to="torch", device="cuda")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(ValueError, match=r"sees 0 GPUs"):
        Loader([1], to="torch", device=torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert bridge("torch", "cuda:1") == Bridge("torch", "cuda:1")
    with pytest.raises(ValueError, match=r"sees 2 GPUs"):
        bridge("torch", "cuda:2")


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

loader = stoker.Loader(Workers(), 2, workers=2, to="NAME")
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


def test_pyarrow_is_imported_with_the_first_batch_and_by_the_consumer_only():
    script = SCRIPT.replace("NAME", "pyarrow").replace('to="pyarrow"', 'to="arrow"')
    script = script.replace('return "pyarrow" in sys.modules', 'return {"loaded": "pyarrow" in sys.modules}')
    script = script.replace(
        'batch.numpy().tolist() == [False, False] if "pyarrow" != "jax" else not batch.any()',
        'batch["loaded"].to_pylist() == [False, False]',
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


@pytest.mark.parametrize(
    "name", ["torch", "jax", *[pytest.param(name, marks=pytest.mark.exhaustive) for name in ("tensorflow", "tinygrad")]]
)
def test_a_framework_is_imported_with_the_first_batch_and_by_the_consumer_only(name):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    subprocess.run([sys.executable, "-c", SCRIPT.replace("NAME", name)], check=True, timeout=100)


def test_an_interrupt_waits_until_the_framework_is_imported(monkeypatch):
    class Interrupting:
        """Among the finders of modules: a signal arrives as the first one is looked for."""

        def find_spec(self, name, path=None, target=None):
            signal.raise_signal(signal.SIGUSR1)

    def handle(*_):
        raise TimeoutError("of the user's own")

    name = "stoker.bridges.to_numpy"
    monkeypatch.setattr(stoker.bridges, "to_numpy", importlib.import_module(name))
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    stoker.bridges._room.cache_clear()
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with pytest.raises(TimeoutError):
            Bridge("numpy")([1])
        assert hasattr(sys.modules[name], "convert")
    finally:
        signal.signal(signal.SIGUSR1, before)
        stoker.bridges._room.cache_clear()
