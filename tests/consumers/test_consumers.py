"""Several consumers on one machine: together they get each sample once, all in equally many batches."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.consumers.program import CONSUMERS, EPOCHS, LENGTH, make
from tests.programs import TORCHRUN, run_python

PROGRAM = Path(__file__).parent / "program.py"
SECONDS = 100  # on a busy machine; alone, none takes more than 10


def run(kind: str, folder: Path) -> None:
    arguments = [*(TORCHRUN if kind == "torchrun" else []), str(PROGRAM), kind, str(folder)]
    path = {"PYTHONPATH": f"{PROGRAM.parents[2]}:{os.environ.get('PYTHONPATH', '')}"}
    ended = run_python(arguments, SECONDS, path, stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout
    assert "Traceback" not in ended.stdout, ended.stdout


def read(folder: Path, index: int) -> list[list[list[int]]]:
    """Epochs of batches of indices."""
    return json.loads((folder / f"{index}.json").read_text())


def alone(index: int, count: int) -> list[list[list[int]]]:
    """What the consumer should get, by a loader without workers in this process."""
    with make((index, count), workers=0) as loader:
        return [[batch.tolist() for batch in loader] for _ in range(EPOCHS)]


def needs(kind: str) -> Any:
    module = {"torch": "torch", "late-torch": "torch", "torchrun": "torch", "jax": "jax"}.get(kind, "numpy")
    return pytest.param(kind, marks=pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed"))


@pytest.mark.parametrize("kind", [needs(kind) for kind in ("spawn", "fork", "torch", "late-torch", "torchrun", "jax")])
def test_together_they_get_each_sample_once_in_equally_many_batches(kind, tmp_path):
    run(kind, tmp_path)
    count = CONSUMERS[kind]
    shares = [read(tmp_path, index) for index in range(count)]
    for epoch in range(EPOCHS):
        together = [index for share in shares for batch in share[epoch] for index in batch]
        assert sorted(together) == list(range(LENGTH))
        assert [len(share[epoch]) for share in shares] == [len(shares[0][epoch])] * count
    assert shares == [alone(index, count) for index in range(count)]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_when_one_is_killed_the_others_go_on(method, tmp_path):
    run(f"killed-{method}", tmp_path)
    assert not (tmp_path / "1.json").exists()
    assert [read(tmp_path, index) for index in (0, 2)] == [alone(index, 3) for index in (0, 2)]
