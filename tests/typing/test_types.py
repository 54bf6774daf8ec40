"""What a user's type checker sees: the package is typed, and a loader needs no annotation."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import stoker

PROGRAM = """
    from typing import Any
    from typing_extensions import assert_type
    import stoker

    def total(batch: Any) -> float:
        return float(batch.sum())

    loader = stoker.Loader([1, 2, 3], 2, workers=stoker.Threads(2))
    for batch in loader:
        assert_type(batch, Any)
    for number in stoker.Loader([1, 2, 3], to=total):
        assert_type(number, float)
    with stoker.Loader([1], workers="auto", shard=(0, 1)) as closing:
        assert_type(closing.state_dict(), dict[str, Any])
        assert_type(closing.stats().diagnosis, str)
"""


def check(tmp_path, code: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(code))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)


def test_a_users_program_passes_a_strict_check(tmp_path):
    assert (checked := check(tmp_path, PROGRAM)).returncode == 0, checked.stdout


def test_a_wrong_word_is_found(tmp_path):
    checked = check(tmp_path, "import stoker\nstoker.Loader([1], on_error='ignore')\n")
    assert "on_error" in checked.stdout


def test_the_package_says_that_it_is_typed():
    assert (__import__("pathlib").Path(stoker.__file__).parent / "py.typed").exists()
