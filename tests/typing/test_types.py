"""What a user's type checker sees: the types of batches follow from arguments, and mistakes are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stoker
from tests.typing.checkers import PROGRAMS, by_mypy, by_pyright


@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_uses_have_the_types_that_they_say_and_each_mistake_is_found(check, tmp_path):
    found = check(["uses.py", "misuses.py"], tmp_path)
    assert found["uses.py"] == {}
    lines = enumerate((PROGRAMS / "misuses.py").read_text().splitlines(), start=1)
    assert sorted(found["misuses.py"]) == [number for number, line in lines if line.endswith("# error")]


@pytest.mark.parametrize("check", [pytest.param(by_mypy, marks=pytest.mark.exhaustive), by_pyright])
def test_the_drop_in_is_typed_as_torchs_loader_is(check, tmp_path):
    pytest.importorskip("torch")
    assert check(["with_torch.py"], tmp_path) == {"with_torch.py": {}}


def test_the_types_are_true():
    """The program looks at what it gets, on worker processes."""
    done = subprocess.run([sys.executable, PROGRAMS / "uses.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_package_says_that_it_is_typed():
    assert (Path(stoker.__file__).parent / "py.typed").exists()
