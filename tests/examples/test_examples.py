"""The examples run, each as its user would start it, and learn."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.programs import TORCHRUN, run_python

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "train_torch.py": ["torch", "sklearn"],
    "train_images.py": ["torch", "PIL"],
    "train_language_model.py": ["torch"],
    "train_parquet.py": ["torch", "pyarrow"],
    "train_keras.py": ["keras", "tensorflow", "sklearn"],
    "train_torch_ddp.py": ["torch", "sklearn"],
    "train_lightning.py": ["lightning", "torch", "sklearn"],
    "train_accelerate.py": ["accelerate", "torch", "sklearn"],
    "train_trainer.py": ["transformers", "accelerate", "torch", "sklearn"],
    "train_jax.py": ["jax", "sklearn"],
    "train_tensorflow.py": ["tensorflow", "sklearn"],
    "train_tinygrad.py": ["tinygrad", "sklearn"],
    "fabric_swift_loader.py": ["lightning_fabric", "torch", "sklearn"],
    "dataset_server_digits.py": ["torch", "sklearn"],
    "pyloader_torch.py": ["torch"],
    "pyloader_tensorflow.py": ["tensorflow"],
    "tinyloader_digits.py": ["tinygrad", "sklearn"],
}
# Others show the same: tests/torch_frameworks has ranks of torch, tests/compat has SwiftLoader, and each framework and
# other front has another example.
MORE = {"train_torch_ddp.py", "train_tinygrad.py", "train_tensorflow.py", "pyloader_tensorflow.py"}
MORE |= {"fabric_swift_loader.py"}
EPOCH = re.compile(r"^epoch (\d+): .*loss (\d\.\d+), accuracy (\d+\.\d)%$", re.MULTILINE)
SECONDS = 100  # on a busy machine; alone, none takes more than 15


def run(program: Path, launcher: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return run_python([*launcher, str(program)], SECONDS, {"TF_CPP_MIN_LOG_LEVEL": "3"})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive) if name in MORE else name for name in NEEDS]
)
def test_an_example_runs_and_learns(name):
    for module in NEEDS[name]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    ran = run(EXAMPLES / name, TORCHRUN if name == "train_torch_ddp.py" else [])
    assert ran.returncode == 0, ran.stderr
    epochs = EPOCH.findall(ran.stdout)
    assert [int(number) for number, _, _ in epochs] == list(range(1, len(epochs) + 1)), ran.stdout
    losses = [float(loss) for _, loss, _ in epochs]
    assert losses[-1] < losses[0] * 2 / 3
    assert float(epochs[-1][2]) > 85
    if name == "train_torch_ddp.py":
        assert ran.stdout.count(": 1437 digits, ") == len(epochs), "both ranks together see each digit once"


def test_the_notebook_runs():
    """In a kernel of this interpreter. Its cells hold what they promise by asserts, and one that fails ends it."""
    for module in ("nbclient", "ipykernel"):
        pytest.importorskip(module)
    ran = run(EXAMPLES / "notebook.ipynb", launcher=["-m", "jupyter", "execute", "--kernel_name=python3"])
    assert ran.returncode == 0, ran.stderr


def test_every_example_is_in_the_table_and_short():
    files = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert files == sorted([*NEEDS, "train_ray.py"])  # which tests/ray runs, on its cluster
    table = (EXAMPLES / "README.md").read_text()
    assert [name for name in [*files, "notebook.ipynb"] if f"[`{name}`]({name})" not in table] == []
    assert [name for name in files if len((EXAMPLES / name).read_text().splitlines()) > 80] == []
