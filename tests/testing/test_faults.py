"""``chaos`` does harm, spread out, and leaves nobody behind; ``assert_survives`` tells whether it mattered."""

from __future__ import annotations

import os
from itertools import pairwise

import psutil
import pytest

from stoker import Inline, Loader, Processes, Threads, WorkerDied
from stoker.testing import assert_survives, chaos, faults
from tests.datasets import Augmented, Rows
from tests.testing.fakes import Counting, LosesOneADeath, RepeatsOneADeath, Sleepy

STARTS = ["nursery", "fork", "spawn"]
NAMES = {"SIGKILL", "SIGSEGV", "SIGSTOP"}


@pytest.fixture
def only_stops(monkeypatch):
    monkeypatch.setattr(faults, "_KINDS", ("SIGSTOP",))


def stopped(pids) -> list[int]:
    return [pid for pid in pids if psutil.Process(pid).status() == psutil.STATUS_STOPPED]


@pytest.mark.parametrize("start", STARTS)
def test_chaos_changes_nothing_but_the_workers(start):
    with Loader(Sleepy(150), 5, workers=Processes(2, start=start)) as loader:
        disturbed = chaos(loader, faults=0.5)
        for _ in range(2):
            assert [int(batch[0, 0]) for batch in disturbed] == list(range(0, 150, 5))
        assert disturbed.survived.total() >= 2
        assert set(disturbed.survived) <= NAMES


def test_where_there_are_no_worker_processes_nothing_happens():
    for workers in (Inline(), Threads(2)):
        with Loader(Rows(50), 5, workers=workers) as loader:
            disturbed = chaos(loader, faults=1.0)
            assert len(list(disturbed)) == 10
            assert not disturbed.survived


def test_no_worker_stays_stopped_at_the_end(only_stops):
    with Loader(Sleepy(100), 5, workers=2) as loader:
        disturbed = chaos(loader, faults=1.0)
        assert len(list(disturbed)) == 20
        assert not stopped(loader.worker_pids)
        assert set(disturbed.survived) == {"SIGSTOP"}


def test_no_worker_stays_stopped_when_the_loop_is_broken_off(only_stops):
    with Loader(Sleepy(100), 5, workers=2) as loader:
        for step, _ in enumerate(chaos(loader, faults=1.0)):
            if step == 3:
                break
        assert not stopped(loader.worker_pids)
        with pytest.raises(ZeroDivisionError):
            [1 // 0 for _ in chaos(loader, faults=1.0)]
        assert not stopped(loader.worker_pids)


def test_kills_are_spread_so_that_no_batch_meets_three(monkeypatch):
    """By contract three deaths over one batch are the end of it."""
    killed, taken = [], 0
    opened = faults.opened

    def noting(pid):
        killed.append((taken, pid))
        return opened(pid)

    monkeypatch.setattr(faults, "opened", noting)
    monkeypatch.setattr(faults, "_KINDS", ("SIGKILL", "SIGSEGV"))
    with Loader(Sleepy(400), 4, workers=3) as loader:
        for _ in chaos(loader, faults=1.0, seed=1):
            taken += 1
    steps = [step for step, _ in killed]
    assert len(steps) > 2
    assert min(later - earlier for earlier, later in pairwise(steps)) >= 6
    assert len({pid for _, pid in killed}) == len(killed)


def test_a_batch_that_is_given_up_all_the_same_is_explained():
    with Loader(Sleepy(2000), 5, workers=1, max_deaths=1) as loader:
        with pytest.raises(WorkerDied) as caught:
            list(chaos(loader, faults=1.0))
    assert "raise max_deaths" in "".join(caught.value.__notes__)


def test_a_stranger_is_never_harmed():
    """A number that a worker had may be another process's by now."""
    for pid in (1, os.getppid()):
        with pytest.raises(ProcessLookupError), faults.opened(pid):
            pass


def test_what_is_no_loader_or_no_chance_is_told():
    with pytest.raises(TypeError, match="list, which has no stats"):
        chaos([1, 2])
    for often in (-0.1, 1.5, True, "often"):
        with Loader(Rows(8), 4) as loader, pytest.raises(ValueError, match=r"from 0\.0 to 1\.0"):
            chaos(loader, faults=often)


@pytest.mark.parametrize("start", STARTS)
def test_a_good_dataset_survives(start):
    assert_survives(lambda: Loader(Augmented(300), 5, shuffle=True, workers=Processes(2, start=start)))


def test_a_good_dataset_survives_out_of_order():
    assert_survives(lambda: Loader(Sleepy(300), 5, workers=3, in_order=False, max_deaths=100), in_order=False)


def test_without_worker_processes_there_is_nothing_to_survive():
    for workers in (Inline(), Threads(2)):
        assert_survives(lambda workers=workers: Loader(Augmented(50), 5, workers=workers))


def test_a_dataset_with_hidden_state_does_not_survive():
    """One worker: but for the deaths, both would count alike."""
    with pytest.raises(AssertionError, match=r"under chaos with seed 0.*epoch \d, batch \d+: batch\[0, 0\]"):
        assert_survives(lambda: Loader(Counting(300), 5, workers=1), faults=1.0)


@pytest.mark.parametrize(
    ("around", "words"), [(LosesOneADeath, "those before it were lost"), (RepeatsOneADeath, "delivered before")]
)
def test_what_a_death_loses_or_repeats_is_found(around, words):
    with pytest.raises(AssertionError, match=words):
        assert_survives(lambda: around(Loader(Sleepy(300), 5, workers=2)), faults=1.0)


def test_a_trial_without_any_fault_is_no_success():
    with pytest.raises(AssertionError, match="no worker was harmed in 2 epochs"):
        assert_survives(lambda: Loader(Rows(50), 5, workers=1), faults=0.0)


def test_mistakes_of_the_caller_are_told():
    with pytest.raises(TypeError, match="which has no worker_pids"):
        assert_survives(lambda: [1])
    with Loader(Rows(8), 4) as used, pytest.raises(ValueError, match="the same loader twice"):
        assert_survives(lambda: used)
