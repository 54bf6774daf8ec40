"""``python -m stoker`` is the command, too."""

from __future__ import annotations

import subprocess
import sys

import stoker


def test_the_module_is_the_command():
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "stoker", *arguments], capture_output=True, text=True, timeout=60)

    assert run("--version").stdout == f"stoker {stoker.__version__}\n"
    refused = run("no such command")
    assert refused.returncode == 2
    assert refused.stderr.startswith("usage: stoker ")
