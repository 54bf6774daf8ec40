"""On other systems, as far as a Linux that lacks what they lack can show it: see ``lacks.py`` and docs/systems.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_WITHOUT_WORKERS = "tests/systems/features.py"


def run_on(system: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, on this system or on one that ``sitecustomize`` makes of it."""
    path = [str(_HERE / system), str(_ROOT / "src")] if system != "linux" else [str(_ROOT / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=_ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def on_linux():
    run = run_on("linux", _WITHOUT_WORKERS)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("system", ["mac", "windows"])
def test_without_worker_processes_all_comes_out_as_on_linux(system, on_linux):
    run = run_on(system, _WITHOUT_WORKERS)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == on_linux


_REFUSED = """
import stoker
for option in %r:
    try:
        stoker.Loader([1, 2], **eval(f"dict({option})"))
    except NotImplementedError as error:
        print(error)
"""


def refused(system: str, *options: str) -> list[str]:
    """What the constructor says to these."""
    run = run_on(system, "-c", _REFUSED % (options,))
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_on_windows_an_error_of_the_constructor_names_threads():
    kinds = ["2", "'auto'", "stoker.Processes(2)", "stoker.Auto()", "stoker.Ray(2)"]
    said = refused("windows", *(f"workers={workers}" for workers in kinds))
    assert [one.split()[0] for one in said] == ["Processes", "Auto", "Processes", "Auto", "Ray"]
    assert all("pass workers=stoker.Threads(n)" in one for one in said)


@pytest.mark.parametrize("system", ["mac", "windows"])
def test_an_error_of_the_constructor_says_which_option_does_not_work(system):
    said = refused(system, "cache=stoker.Cache('there')", "rotation=stoker.Rotation(2)")
    assert [one.split()[0] for one in said] == ["cache=", "rotation="]


@pytest.mark.parametrize("system", ["mac", "windows"])
def test_the_doctor_makes_do_without_what_it_cannot_read(system):
    run = run_on(system, "-m", "stoker", "doctor")
    assert run.returncode == 0, run.stderr
    assert not run.stderr


_DEATHS = """
import os, signal, stoker
class Numbers:
    def __len__(self): return 40
    def __getitem__(self, index):
        if index in (7, 23) and not os.path.exists(f"{folder}/{index}"):
            open(f"{folder}/{index}", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return index
folder = %r
for start in ("nursery", "fork"):
    with stoker.Loader(Numbers(), batch_size=4, workers=stoker.Processes(2, start=start)) as loader:
        print([int(index) for batch in loader for index in batch])
"""


def test_on_a_mac_batches_of_killed_workers_are_made_again(tmp_path):
    run = run_on("mac", "-c", _DEATHS % str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [str(list(range(40)))] * 2
    assert run.stderr.count("SIGKILL (-9)") == 2, run.stderr


_KILLED = """
import os, signal, stoker
with stoker.Loader(range(1000), workers=stoker.Processes(2, start=%r)) as loader:
    while len(loader.worker_pids) < 2:  # one of them can make all that is asked for before the other is up
        for batch in loader:
            pass
    print(*loader.worker_pids, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("start", ["nursery", "fork"])
def test_on_a_mac_workers_end_with_a_consumer_that_is_killed(start):
    """Its standard output is theirs, too: it ends with the last of them."""
    run = run_on("mac", "-c", _KILLED % start)
    pids = [int(pid) for pid in run.stdout.split()]
    assert len(pids) == 2, run.stderr
    assert not any(os.path.exists(f"/proc/{pid}") and _is_python(pid) for pid in pids)


def _is_python(pid: int) -> bool:
    """Not yet taken away by whoever inherited it, it has no command line any more."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


@pytest.mark.exhaustive
@pytest.mark.timeout(3000)
def test_on_a_mac_worker_processes_pass_the_conformance_suite():
    plugins = ["-p", "no:cacheprovider", "-p", "tests.systems.skipping"]
    run = run_on("mac", "-m", "pytest", "-q", *plugins, "tests/conformance", "-k", "Processes or Auto", "--timeout=600")
    assert run.returncode == 0, run.stdout[-4000:]
    assert " passed" in run.stdout
