"""``loader.warm_up()``: workers get ahead before the first loop, as far as ``prefetch`` allows, and nothing is lost."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import pytest

from stoker import ClosedError, Inline, Loader, Processes, Threads, WorkerDied
from tests.datasets import Augmented, Failing, Rows, Unmakeable
from tests.streams import assert_same, epochs


class Counted(Rows):
    """Writes down each sample that it is asked for. So few that none of its batches are made in one go."""

    def __init__(self, file: str, n: int = 40) -> None:
        super().__init__(n)
        self.file = file

    def __getitem__(self, index):
        with open(self.file, "a") as file:
            file.write(f"{index}\n")
        return self.data[index]


class Stuck(Rows):
    """Never gives anything."""

    def __getitem__(self, index):
        threading.Event().wait()


class DeadWhenUnpacked(Rows):
    def __setstate__(self, state):
        os.kill(os.getpid(), signal.SIGKILL)


def asked(file) -> list[int]:
    return [int(line) for line in file.read_text().split()]


def test_the_stream_is_the_same_with_it_and_without(backend):
    with Loader(Augmented(40), 3, shuffle=True, workers=backend) as loader, Loader(Augmented(40), 3, shuffle=True) as o:
        loader.warm_up()
        assert_same(epochs(loader, 2), epochs(o, 2))


@pytest.mark.parametrize("workers", [Threads(2), Processes(2)], ids=repr)
def test_all_that_prefetch_allows_is_made(tmp_path, workers):
    """Also where a worker is sent only two batches at a time, and the next when it has answered."""
    with Loader(Counted(tmp_path / "asked"), 3, workers=workers, prefetch=5) as loader:
        loader.warm_up()
        assert sorted(asked(tmp_path / "asked")) == list(range(2 * 5 * 3))
        assert [int(batch[0, 0]) for batch in loader] == list(range(0, 40, 3))


def test_inline_the_first_batch_is_made(tmp_path):
    with Loader(Counted(tmp_path / "asked"), 3, workers=Inline()) as loader:
        loader.warm_up()
        assert asked(tmp_path / "asked") == [0, 1, 2]
        assert int(next(iter(loader))[0, 0]) == 0
        assert asked(tmp_path / "asked") == [0, 1, 2]


def test_a_short_epoch_is_no_limit(tmp_path):
    with Loader(Counted(tmp_path / "asked", 4), 2, workers=1, prefetch=5) as loader:
        loader.warm_up()
        assert asked(tmp_path / "asked") == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
        assert [len(list(loader)) for _ in range(3)] == [2, 2, 2]


def test_after_so_many_seconds_it_waits_no_longer():
    with Loader(Stuck(8), 2, workers=2) as loader:
        began = time.monotonic()
        loader.warm_up(0.2)
        assert 0.2 <= time.monotonic() - began < 5


def test_no_seconds_only_start_the_workers():
    with Loader(Stuck(8), 2, workers=2) as loader:
        loader.warm_up(0)
        assert not loader.stats().batches


def test_an_empty_dataset_has_nothing_to_wait_for(backend):
    with Loader(Rows(0), 2, workers=backend) as loader:
        loader.warm_up()
        assert list(loader) == []


def test_batches_for_a_device_are_made_too(tmp_path):
    def to_device(batch):
        return batch.copy()

    with Loader(Counted(tmp_path / "asked"), 3, workers=1, prefetch=5, to_device=to_device) as loader:
        loader.warm_up()
        assert asked(tmp_path / "asked")[: 5 * 3] == list(range(5 * 3))
        iterator = iter(loader)
        assert int(next(iterator)[0, 0]) == 0
        loader.warm_up()
        assert [int(batch[0, 0]) for batch in iterator] == list(range(3, 40, 3))


def test_errors_come_in_their_turn(backend):
    with Loader(Failing(40), 5, workers=backend, prefetch=4) as loader:
        loader.warm_up()
        iterator = iter(loader)
        assert [int(next(iterator)[0, 0]) for _ in range(2)] == [0, 5]
        with pytest.raises(ValueError, match="thirteen"):
            next(iterator)
        loader.warm_up()  # passes over the one that failed, as going on does
        assert [int(batch[0, 0]) for batch in iterator] == [15, 20, 25, 30, 35]


def test_it_goes_on_where_a_state_leads():
    with Loader(Rows(40), 5, shuffle=True, workers=2) as loader, Loader(Rows(40), 5, shuffle=True) as oracle:
        (wanted,) = epochs(oracle, 1)
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        loader.load_state_dict(state)
        loader.warm_up()
        assert_same(epochs(loader, 1)[0], wanted[1:])


def test_in_the_middle_of_an_epoch_nothing_is_lost(backend):
    with Loader(Rows(40), 5, workers=backend) as loader:
        iterator = iter(loader)
        assert int(next(iterator)[0, 0]) == 0
        loader.warm_up()
        assert [int(batch[0, 0]) for batch in iterator] == list(range(5, 40, 5))
        loader.warm_up()
        assert len(list(loader)) == 8


def test_a_dataset_that_cannot_be_made_is_its_error():
    with Loader(Unmakeable, 5, workers=2) as loader, pytest.raises(LookupError, match="no data here"):
        loader.warm_up()


def test_workers_that_die_one_after_the_other_do_not_hold_it_up():
    with Loader(DeadWhenUnpacked(40), 5, workers=2) as loader:
        loader.warm_up()
        with pytest.raises(WorkerDied):
            next(iter(loader))


@pytest.mark.parametrize("seconds", [None, 60])
def test_workers_that_hang_are_ended_meanwhile(seconds):
    with Loader(Stuck(40), 5, workers=2, timeout=0.1, max_deaths=1) as loader:
        loader.warm_up(seconds)
        with pytest.raises(WorkerDied, match="timeout"):
            next(iter(loader))


def test_a_closed_loader_is_not_warmed_up():
    loader = Loader(Rows(40), 5, workers=1)
    loader.close()
    with pytest.raises(ClosedError, match="closed"):
        loader.warm_up()


@pytest.mark.parametrize("seconds", [-1, "3", True, math.nan])
def test_seconds_are_a_number(seconds):
    with Loader(Rows(40), 5) as loader, pytest.raises(ValueError, match="pass a number of seconds"):
        loader.warm_up(seconds)
