"""As many batches as ``prefetch`` says are made while the consumer is busy with another."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from stoker import Loader, Processes, Threads, stream
from stoker.assembly import MOST_AT_A_WORKER
from stoker.workers.processes.records import REQUEST_BYTES

WORKERS, PREFETCH = 2, 6
PATIENCE_S = 20.0

BACKENDS = [Threads(WORKERS), Processes(WORKERS), Processes(WORKERS, start="fork")]


class Written:
    """Writes down each sample that it makes."""

    def __init__(self, path) -> None:
        self._path = str(path)

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(0.01)  # slow enough that batches are not made several at a time
        with open(self._path, "a") as file:
            file.write("x")
        return np.full(3, index)

    def made(self) -> int:
        return os.path.getsize(self._path) if os.path.exists(self._path) else 0


def wait_for(written: Written, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while written.made() < count:
        assert time.monotonic() < deadline, f"{written.made()} were made, and not {count}"
        time.sleep(0.01)  # a file has no event to wait for


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_batches_are_made_while_the_consumer_is_busy(tmp_path, workers):
    written = Written(tmp_path / "made")
    with Loader(written, 1, workers=workers, prefetch=PREFETCH) as loader:
        batches = iter(loader)
        first = next(batches)
        wait_for(written, 1 + WORKERS * PREFETCH)
        rest = [int(batch[0, 0]) for batch in batches]
    assert [int(first[0, 0]), *rest] == list(range(len(written)))


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_results_of_a_stream_are_made_while_the_consumer_is_busy(tmp_path, workers):
    written = Written(tmp_path / "made")
    with stream(written.__getitem__, range(40), workers=workers, prefetch=PREFETCH) as results:
        first = next(results)
        wait_for(written, WORKERS * PREFETCH)  # items are not pulled before they are needed
        assert [int(result[0]) for result in (first, *results)] == list(range(40))


@pytest.mark.parametrize(("in_order", "others"), [(True, WORKERS * PREFETCH - 1), (False, 59)])
def test_what_waits_behind_a_slow_item_is_made_by_others(tmp_path, in_order, others):
    """However many wait there: the other worker, once it has nothing left to do, takes them over."""
    written = Written(tmp_path / "made")

    def work(item: int) -> int:
        if item == 0:
            wait_for(written, others)
        else:
            written[item]
        return item

    with stream(work, range(60), workers=Processes(WORKERS), prefetch=PREFETCH, in_order=in_order) as results:
        done = list(results)
    if in_order:
        assert done == list(range(60))
    else:
        assert done[-1] == 0
        assert sorted(done) == list(range(60))


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_more_may_be_prefetched_than_a_workers_pipe_holds(workers):
    with stream(int, range(5000), workers=workers, prefetch=10_000) as results:
        assert list(results) == list(range(5000))


def test_what_a_worker_may_have_fits_into_the_smallest_pipe():
    """Which the system gives to users who have many; the question for a dataset's length lies there, too."""
    assert os.sysconf("SC_PAGE_SIZE") >= (MOST_AT_A_WORKER + 1) * REQUEST_BYTES
