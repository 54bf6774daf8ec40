"""What `to=` and `device=` accept, and what they answer at once when they do not."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from stoker.bridges import Bridge, bridge


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


def test_a_bridge_pickles():
    assert pickle.loads(pickle.dumps(Bridge("torch", "cuda:1"))) == Bridge("torch", "cuda:1")


def test_a_framework_is_imported_with_the_first_batch_only():
    pytest.importorskip("torch", reason="torch is not installed")
    script = (
        "import sys, numpy as np\n"
        "from stoker.bridges import bridge\n"
        "cross = bridge('torch')\n"
        "assert 'torch' not in sys.modules\n"
        "cross(np.zeros(2))\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
