"""Workers that are added: when they are used, what becomes of those that cannot be started, and how all of it ends."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from stoker import Auto, Loader
from stoker.workers.processes.backend import ProcessesBackend
from tests.auto.works import Exclusive, Late
from tests.children import nurseries
from tests.datasets import Rows

pytestmark = pytest.mark.cold_nursery


def one_at_first(monkeypatch):
    monkeypatch.setattr("stoker.workers.options.usable_cores", lambda: 1)


def waiting(folder):
    return [int(path.name.partition("-")[2]) for path in folder.glob("waits-*")]


def numbers_of(batches):
    return [int(row[0]) for batch in batches for row in batch]


def test_nobody_waits_for_a_worker_that_is_still_making_its_dataset(determined, monkeypatch, tmp_path):
    one_at_first(monkeypatch)
    with Loader(functools.partial(Late, str(tmp_path), 300), 3, workers=Auto(most=3)) as loader:
        assert numbers_of(loader) == list(range(300))  # by the first worker alone
        assert determined[0].wanted == 3
        assert loader.stats().workers == 1
        (tmp_path / "go").touch()
        epochs = 0
        while loader.stats().workers < 3 and epochs < 1000:
            assert numbers_of(loader) == list(range(300))
            epochs += 1
        assert loader.stats().workers == 3


@pytest.mark.parametrize(
    ("how", "told"), [("die", "exit code 3 while it made the dataset"), ("raise", "it could not make the dataset")]
)
def test_a_worker_that_cannot_be_added_is_done_without(determined, monkeypatch, caplog, how, told):
    one_at_first(monkeypatch)
    with Loader(functools.partial(Exclusive, how, 300), 3, workers=Auto(most=4)) as loader:
        while not determined or not determined[0].refusals:
            assert numbers_of(loader) == list(range(300))
        assert numbers_of(loader) == list(range(300))
        assert loader.stats().deaths == 0
    (message, *_) = [record.getMessage() for record in caplog.records]
    assert f"could not be started: {told}. They go on without it." in message


def test_a_system_that_has_no_more_processes_is_no_error(determined, monkeypatch, caplog):
    one_at_first(monkeypatch)
    start = ProcessesBackend.start

    def refuse(self, worker, *, is_needed=True):
        if not is_needed:
            raise OSError(11, "no more processes may be made")
        start(self, worker)

    monkeypatch.setattr(ProcessesBackend, "start", refuse)
    with Loader(Rows(300), 3, workers=Auto(most=4)) as loader:
        while not determined or not determined[0].refusals:
            assert numbers_of(loader) == list(range(300))
        assert numbers_of(loader) == list(range(300))
    assert "no more processes may be made" in caplog.text


def test_a_worker_that_is_killed_while_it_comes_is_done_without(determined, monkeypatch, tmp_path, caplog):
    one_at_first(monkeypatch)
    with Loader(functools.partial(Late, str(tmp_path), 300), 3, workers=Auto(most=2)) as loader:
        while not waiting(tmp_path):
            assert numbers_of(loader) == list(range(300))
        os.kill(waiting(tmp_path)[0], signal.SIGKILL)
        while not determined[0].refusals:
            assert numbers_of(loader) == list(range(300))
    assert "SIGKILL" in caplog.text


@pytest.mark.parametrize("how", ["close", "collect", "close in a thread"])
def test_closing_while_workers_are_coming_leaves_nothing_behind(determined, monkeypatch, tmp_path, how):
    one_at_first(monkeypatch)
    loader = Loader(functools.partial(Late, str(tmp_path), 300), 3, workers=Auto(most=3))
    while len(waiting(tmp_path)) < 2:
        assert numbers_of(loader) == list(range(300))
    if how == "close":
        loader.close()
    elif how == "close in a thread":
        thread = threading.Thread(target=loader.close)
        thread.start()
        thread.join()
    del loader


def test_closing_while_workers_come_and_go_leaves_nothing_behind(restless):
    for taken in range(1, 40, 4):
        with Loader(Rows(300), 3, workers=Auto(most=4)) as loader:
            batches = iter(loader)
            for _ in range(taken):
                next(batches)


def test_the_nursery_is_killed_while_workers_come_and_go(restless):
    with Loader(Rows(600), 3, workers=Auto(most=4), max_deaths=50) as loader:
        got = []
        for number, batch in enumerate(loader):
            got += numbers_of([batch])
            if number % 50 == 20:
                for nursery in nurseries():
                    nursery.kill()
    assert got == list(range(600))


def test_workers_end_with_their_consumer_however_that_ends():
    script = (
        "import os, numpy as np, stoker\n"
        "loader = stoker.Loader(np.arange(10000), 4, workers=stoker.Auto(3))\n"
        "batches = iter(loader)\n"
        "for _ in range(50): next(batches)\n"
        "print(*loader.worker_pids, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    pids = list(map(int, done.stdout.split()))
    assert len(pids) == 3
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(10)
