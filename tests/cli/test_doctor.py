"""`stoker doctor` in the terminal."""

from __future__ import annotations

import json

import pytest

from stoker.cli import doctor
from tests.cli.running import run
from tests.doctor.machines import host


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Puts another machine in the place of this one."""

    def put(files=None, **given):
        monkeypatch.setattr(doctor, "Host", lambda workers: host(tmp_path, files, **given, workers=workers))

    return put


def test_a_sound_machine_is_exit_code_0(machine):
    machine()
    done = run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Nothing to change\n")
    assert "ok       CPU quota: 8 cores" in done.stdout


def test_a_warning_is_exit_code_1_with_why_and_the_line_that_mends_it(machine):
    machine(open_files=64)
    done = run("doctor")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "warning  open files (ulimit -n): 64"
    assert "Too many open files" in lines[1]
    assert lines[2].strip() == "$ ulimit -n 65536"
    assert lines[-1] == "1 thing to change"


def test_json_has_all_of_it(machine):
    machine(environment={"OMP_NUM_THREADS": "4"})
    done = run("doctor", "--json", "--workers", "4")
    found = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    assert found[0]["level"] == "warning"
    assert found[0].keys() == {"check", "level", "what", "why", "remedy"}
    assert "4 workers with 4 threads each" in found[0]["what"]


def test_a_wrong_argument_is_exit_code_2():
    done = run("doctor", "--workers", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not positive" in done.stderr


def test_it_runs_on_this_machine():
    assert run("doctor").returncode in (0, 1)
