"""Every way a program can end while its workers are in the middle of something: all of them end with it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from stoker import Loader, Processes, Threads
from tests.datasets import Rows
from tests.lifecycle.programs import BUSY, program
from tests.lifecycle.scripts import run, write

STARTS = ("nursery", "fork", "spawn")
ALL = [*[f"Processes(3, start={start!r})" for start in STARTS], "Threads(8)"]
EIGHT = [option.replace("3", "8") for option in ALL]


# Ctrl-C: the terminal sends it to the whole group


@pytest.mark.parametrize("workers", EIGHT)
def test_ctrl_c_is_one_traceback_and_the_end_of_all(workers):
    with program("with loader: wait()", workers) as running:
        os.killpg(running.pid, signal.SIGINT)
        code, errors = running.end()
    assert code == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize(
    ("when", "workers"),
    [("at once", EIGHT[0]), ("at once", EIGHT[3]), *[("while it closes", workers) for workers in EIGHT]],
)
def test_ctrl_c_twice_ends_all_just_as_well(when, workers):
    code = """
        with loader:
            try:
                wait()
            finally:
                os.write(2, b"closing\\n")
    """
    with program(code, workers) as running:
        os.killpg(running.pid, signal.SIGINT)
        if when == "while it closes":
            assert running.lines[1].readline() == "closing\n"
        os.killpg(running.pid, signal.SIGINT)
        code, errors = running.end()
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


GATED = """
import fcntl, os, stoker
from stoker import Processes, Threads

class Gated:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        with open("GATE") as gate:
            try:
                fcntl.flock(gate, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                os.write(1, b"busy\\n")
                fcntl.flock(gate, fcntl.LOCK_SH)
        return index

with open("GATE", "w") as gate, stoker.Loader(Gated(), 1, workers=WORKERS) as loader:
    fcntl.flock(gate, fcntl.LOCK_EX)
    iterator = iter(loader)
    try:
        os.write(1, b"ready\\n")
        next(iterator)
    except KeyboardInterrupt:
        fcntl.flock(gate, fcntl.LOCK_UN)
    assert [int(batch[0]) for batch in iterator] == list(range(40))
    assert [int(batch[0]) for batch in loader] == list(range(40))
    assert loader.epoch == 2
"""


@pytest.mark.parametrize("workers", ALL)
def test_a_program_that_catches_ctrl_c_goes_on_where_it_was(workers, tmp_path):
    """Workers wait for a lock that the consumer has, until Ctrl-C: then comes all of the epoch, and the next one."""
    with program("", workers, prelude=GATED.replace("GATE", str(tmp_path / "gate"))) as running:
        os.killpg(running.pid, signal.SIGINT)
        assert running.end() == (0, "")


# SIGTERM and SIGKILL: to the consumer alone


@pytest.mark.parametrize("workers", ALL)
@pytest.mark.parametrize(("handler", "code"), [("signal.SIG_DFL", -signal.SIGTERM), ("lambda *_: sys.exit(3)", 3)])
def test_sigterm_takes_the_workers_along(handler, code, workers):
    prelude = f"import signal; signal.signal(signal.SIGTERM, {handler})\n{BUSY}"
    with program("with loader: wait()", workers, prelude=prelude) as running:
        os.kill(running.pid, signal.SIGTERM)
        assert running.end() == (code, "")


@pytest.mark.parametrize("workers", ALL[:3])
def test_sigkill_leaves_no_process_and_no_file_and_the_next_run_starts_clean(workers, tmp_path):
    folder = str(tmp_path)
    with program("wait()", workers, folder=folder) as running:
        named = [line for pid in (running.pid, *running.workers) for line in held(pid)]
        os.kill(running.pid, signal.SIGKILL)
        assert running.end() == (-signal.SIGKILL, "")
    assert not named
    with program("with loader: wait_for_a_line()", workers, folder=folder) as running:
        assert running.end("go on\n") == (0, "")
    assert not list(tmp_path.iterdir())


def held(pid: int) -> list[str]:
    """Shared memory with a name that a process has mapped: what would stay when it is killed."""
    with open(f"/proc/{pid}/maps") as maps:
        return [line for line in maps if "/dev/shm/" in line]


# Its own end


ENDINGS = {
    "an exception in the loop": ("with loader: wait_for_a_line(); 1 / 0", 1, "ZeroDivisionError: division by zero"),
    "the end without close": ("wait_for_a_line()", 0, ""),
    "exit without anything": ("wait_for_a_line(); os._exit(3)", 3, ""),
    "forgotten": ("wait_for_a_line(); del loader, iterator; wait_for_a_line()", 0, ""),
}


@pytest.mark.parametrize("workers", [ALL[0], ALL[1], ALL[3]])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_that_ends_by_itself_does_not_wait_for_busy_workers(workers, ending):
    code, status, words = ENDINGS[ending]
    with program(code, workers) as running:
        found, errors = running.end("go on\ngo on\n")
    assert found == status
    assert errors.rstrip().endswith(words) if words else errors == ""


@pytest.mark.parametrize("workers", ALL)
def test_a_forked_child_may_have_a_loader_of_its_own(workers):
    """While its parent has one open: each gets its own stream, and the child's normal exit harms nobody."""
    code = """
        import os, sys, stoker
        from stoker import Processes, Threads
        with stoker.Loader(list(range(40)), 1, workers=WORKERS) as loader:
            iterator = iter(loader)
            got = [int(next(iterator)[0])]
            child = os.fork()
            if not child:
                with stoker.Loader(list(range(60)), 1, workers=WORKERS) as own:
                    assert [int(batch[0]) for _ in range(2) for batch in own] == 2 * list(range(60))
                sys.exit(7)
            got += [int(batch[0]) for batch in iterator]
            assert got == list(range(40))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert [int(batch[0]) for batch in loader] == got
    """
    code = textwrap.dedent(code).replace("WORKERS", workers)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Traceback" not in ran.stderr


@pytest.mark.timeout(20)
def test_a_thread_that_outlives_its_loader_writes_into_nobody_elses_file(tmp_path, monkeypatch):
    """Its slots' descriptor was closed, and the next file that is opened gets the same number."""
    monkeypatch.setattr("stoker.workers.threads._JOIN_S", 0.1)
    begun, go_on = threading.Event(), threading.Event()

    class Patient(Rows):
        def __getitem__(self, index):
            if index == 5:
                begun.set()
                go_on.wait()
            return super().__getitem__(index)

    loader = Loader(Patient(40), 5, workers=Threads(1))
    next(iter(loader))
    assert begun.wait(10)
    (worker,) = [thread for thread in threading.enumerate() if thread.name.startswith("stoker")]
    loader.close()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(tmp_path / str(k), "wb+")) for k in range(20)]
        go_on.set()
        worker.join()
    assert [os.path.getsize(file.name) for file in files] == [0] * 20


@pytest.mark.timeout(20)
@pytest.mark.parametrize("workers", [Processes(3), Processes(3, start="fork"), Threads(3)], ids=repr)
def test_a_close_that_was_interrupted_can_be_finished(workers, monkeypatch, tmp_path):
    """Ctrl-C while close waits for busy workers, in a notebook: the second close does what the first could not."""
    monkeypatch.setattr("stoker.workers.threads._JOIN_S", 0.5)
    busy = tmp_path / "busy"
    os.mkfifo(busy)

    class Sleepy(Rows):
        def __getitem__(self, index):
            if index >= 5:
                busy.write_bytes(b".")
                time.sleep(0.1 if workers == Threads(3) else 60)
            return super().__getitem__(index)

    loader = Loader(Sleepy(40), 5, workers=workers)
    ctrl_c = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with open(busy, "rb+", buffering=0) as hearing:
        next(iter(loader))
        hearing.read(1)
        ctrl_c.start()
        with pytest.raises(KeyboardInterrupt):
            loader.close()
        loader.close()
        for thread in threading.enumerate():
            if thread.name.startswith("stoker"):
                thread.join()


def test_a_thread_that_outlives_its_loader_draws_from_its_own_generators(monkeypatch):
    """Else it would draw from those of the process, in the midst of what the consumer itself makes with them."""
    monkeypatch.setattr("stoker.workers.threads._JOIN_S", 0.01)
    begun, go_on = threading.Event(), threading.Event()

    class Patient(Rows):
        def __getitem__(self, index):
            begun.set()
            go_on.wait()
            return random.random() + np.random.rand()

    loader = Loader(Patient(1), 1, workers=Threads(1))
    iterator = iter(loader)

    def press_ctrl_c():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    ctrl_c = threading.Thread(target=press_ctrl_c)
    ctrl_c.start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    ctrl_c.join()
    (worker,) = [thread for thread in threading.enumerate() if thread.name.startswith("stoker")]
    loader.close()
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    go_on.set()
    worker.join()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_a_program_that_adopts_orphans_gets_none_of_our_workers(tmp_path):
    """As the first process of a container does. The nursery hears late that all is over, and has workers still."""
    code = """
        import ctypes, signal, subprocess, time, psutil, stoker

        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

        class Deaf:
            def __len__(self):
                return 16

            def __getitem__(self, index):
                if index:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    time.sleep(600)
                return index

        def resume_and_wait(process, timeout=None, wait=subprocess.Popen.wait):
            nursery.resume()
            return wait(process, timeout)

        loader = stoker.Loader(Deaf(), 1, workers=8)
        next(iter(loader))
        nursery = psutil.Process(loader.worker_pids[0]).parent()
        nursery.suspend()
        subprocess.Popen.wait = resume_and_wait
        loader.close()
        print([child.status() for child in psutil.Process().children()])
    """
    write(tmp_path, {"train.py": code})
    assert run(tmp_path, ["train.py"]) == (0, "[]\n", "")
