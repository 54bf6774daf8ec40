"""A worker that dies is noticed at once, never hangs the consumer, and loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import psutil
import pytest

from stoker import Loader, Processes, WorkerDied
from tests.children import nurseries
from tests.datasets import Augmented, Deadly, KilledOnce, Rows
from tests.streams import assert_same, epochs

STARTS = ["nursery", "fork", "spawn"]


@pytest.fixture
def expected():
    with Loader(Augmented(100), 5, shuffle=True) as loader:
        return epochs(loader, 2)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_stream_is_the_same_as_without_the_death(tmp_path, start, number, expected, caplog):
    """Contract: exactly once, whatever dies."""
    dataset = KilledOnce(str(tmp_path / "killed"), 100, number)
    with Loader(dataset, 5, shuffle=True, workers=Processes(2, start=start)) as loader:
        assert_same(epochs(loader, 2), expected)
    assert [record.message for record in caplog.records if signal.Signals(number).name in record.message]


@pytest.mark.parametrize("start", STARTS)
def test_a_batch_that_always_kills_its_worker_is_given_up_in_its_turn(start):
    with Loader(Deadly(40), 5, workers=Processes(2, start=start)) as loader:
        iterator = iter(loader)
        assert [int(next(iterator)[0, 0]) for _ in range(2)] == [0, 5]
        with pytest.raises(WorkerDied, match=r"position 10 of epoch 0.*3 times.*exit code 3"):
            next(iterator)
        assert [int(batch[0, 0]) for batch in iterator] == [15, 20, 25, 30, 35]


@pytest.mark.parametrize("start", STARTS)
def test_workers_killed_from_outside_again_and_again(start, expected):
    with Loader(Augmented(100), 5, shuffle=True, workers=Processes(3, start=start)) as loader:
        got = []
        for _ in range(2):
            got.append([])
            for step, batch in enumerate(loader):
                got[-1].append({key: value.copy() for key, value in batch.items()})
                if step % 3 == 0:
                    kill_one(loader, step)
        assert_same(got, expected)


def kill_one(loader: Loader, choice: int) -> None:
    if pids := loader.worker_pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[choice % len(pids)], signal.SIGKILL)


def test_the_nursery_itself_may_die(expected):
    with Loader(Augmented(100), 5, shuffle=True, workers=Processes(2)) as loader:
        got = [[]]
        for step, batch in enumerate(loader):
            got[-1].append({key: value.copy() for key, value in batch.items()})
            if step == 4:
                nurseries()[0].kill()
        got.extend(epochs(loader, 1))
        assert_same(got, expected)


WAITING = """
import os, sys, psutil, stoker

class Gated:
    def __len__(self):
        return 40
    def __getitem__(self, index):
        while index >= 10 and not os.path.exists(sys.argv[1]):
            os.sched_yield()
        return index

with stoker.Loader(Gated(), 5, workers=2) as loader:
    iterator = iter(loader)
    got = [next(iterator).tolist(), next(iterator).tolist()]
    print(psutil.Process().children()[0].pid, *loader.worker_pids, flush=True)
    got.extend(batch.tolist() for batch in iterator)
assert sum(got, []) == list(range(40)), got
"""


def test_a_worker_whose_death_was_told_before_the_nursery_died_has_died_once(tmp_path):
    """The consumer hears of both at once. The one in its place must not be held to be dead, too."""
    gate = tmp_path / "gate"
    consumer = psutil.Popen([sys.executable, "-c", WAITING, str(gate)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with consumer:
        nursery, victim, _ = (psutil.Process(int(pid)) for pid in consumer.stdout.readline().split())
        wait_until(lambda: consumer.status() == psutil.STATUS_SLEEPING)  # in next()
        consumer.suspend()
        victim.kill()
        wait_until(lambda: not victim.is_running() and nursery.status() == psutil.STATUS_SLEEPING)  # buried, and told
        nursery.kill()
        wait_until(lambda: nursery.status() == psutil.STATUS_ZOMBIE)
        gate.touch()
        consumer.resume()
        _, errors = consumer.communicate(timeout=30)
    assert consumer.returncode == 0, errors.decode()


def wait_until(condition) -> None:
    while not condition():
        os.sched_yield()


def test_workers_that_die_before_they_can_begin_are_not_started_for_ever():
    class Poisoned(Rows):
        """Kills whoever unpickles it."""

        def __reduce__(self):
            return os._exit, (7,)

    with Loader(Poisoned(40), 5, workers=Processes(2)) as loader:
        iterator = iter(loader)
        with pytest.raises(WorkerDied, match="exit code 7"):
            next(iterator)


def test_a_worker_that_dies_making_the_dataset_is_an_error():
    class Crashing(Rows):
        def __init__(self):
            os._exit(5)

    with Loader(Crashing, 5, workers=Processes(2)) as loader, pytest.raises(WorkerDied, match="exit code 5"):
        len(loader)
