"""``python -m stoker`` is the command, too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import stoker

DOCTOR = [sys.executable, "-m", "stoker", "doctor"]


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


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_standard_stream_is_no_traceback_and_what_goes_there_goes_nowhere_else(closed):
    command = [sys.executable, "-m", "stoker", "replay", "no_such_file"] if closed == "stderr" else [*DOCTOR, "--json"]
    number = {"stdout": 1, "stderr": 2}[closed]
    done = subprocess.run(["sh", "-c", f'exec "$@" {number}>&-', "sh", *command], capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert done.returncode in ({2} if closed == "stderr" else {0, 1})


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_full_disk_behind_the_output_is_said_in_a_line(form):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*DOCTOR, *form], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.stderr == "stoker: error: the output cannot be written: No space left on device\n"
    assert done.returncode == 2
