"""``python -m stoker`` is the command, too."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stoker


def test_the_module_is_the_command():
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "stoker", *arguments], capture_output=True, text=True, timeout=60)

    assert run("--version").stdout == f"stoker {stoker.__version__}\n"
    refused = run("no such command")
    assert refused.returncode == 2
    assert refused.stderr.startswith("usage: stoker ")


@pytest.mark.parametrize("arguments", [["doctor"], ["doctor", "--json"], ["--help"]])
def test_a_reader_that_has_seen_enough_is_no_traceback(arguments):
    with subprocess.Popen(
        [sys.executable, "-m", "stoker", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, 1)
