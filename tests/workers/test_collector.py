"""The collector of garbage in worker processes: it looks at what samples leave behind, and at nothing else."""

from __future__ import annotations

import functools
import gc

import pytest

from stoker import Loader, Processes


class Collecting:
    """Samples are what the collector in the worker is like; each leaves a cycle behind."""

    def __init__(self, count=256):
        self.count = count
        self.kept = [[k] for k in range(1000)]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        cycle: list = []
        cycle.append(cycle)
        frozen = gc.get_freeze_count() if index < 4 else 0  # it counts them all, each time
        return frozen, gc.get_threshold()[0], gc.get_count()[0]


@pytest.mark.parametrize("start", ["nursery", "fork", "spawn"])
def test_what_is_there_when_the_dataset_is_made_is_not_looked_at_again(start):
    with Loader(Collecting(), 4, workers=Processes(1, start=start)) as loader:
        frozen, threshold, _ = next(iter(loader))
    assert (frozen > 2000).all()  # the dataset's lists, and all modules
    assert (threshold == 2000).all()


def test_garbage_of_samples_is_still_collected():
    with Loader(Collecting(8192), 64, workers=1) as loader:
        youngest = [count for _, _, counts in loader for count in counts.tolist()]
    assert max(youngest) <= 2001
    assert min(youngest[4000:]) < 1000  # it has begun anew


def test_a_threshold_of_the_users_own_is_kept():
    with Loader(Collecting(), 4, workers=1, init=functools.partial(gc.set_threshold, 123)) as loader:
        _, threshold, _ = next(iter(loader))
    assert (threshold == 123).all()
