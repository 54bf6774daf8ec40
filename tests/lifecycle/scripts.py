"""Small programs of several files, run to their end; whatever they start ends with them, even if it should not."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

SOURCE = str(Path(__file__).parents[2] / "src")
ENDS_S = 60  # for a program that should take one or two


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, code in files.items():
        (folder / name).write_text(textwrap.dedent(code))


def run(
    folder: Path, arguments: Sequence[str], *, redirections: str = "", environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Runs Python with these arguments there: its exit code, what it wrote, and what it wrote to standard error."""
    line = ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, *arguments]
    variables = {"PYTHONPATH": SOURCE, "PYTHONUNBUFFERED": "", **(environment or {})}
    process = subprocess.Popen(
        line,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | variables,
    )
    with process:
        try:
            output, errors = process.communicate(timeout=ENDS_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # a chain of processes shall not outlive the test of it
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output, errors
