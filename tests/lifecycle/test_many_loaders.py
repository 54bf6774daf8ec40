"""Loaders made and dropped by the dozen, in every way one can drop them, leave nothing behind and cost no memory.

``STOKER_MANY_LOADERS=1000 pytest tests/lifecycle/test_many_loaders.py`` for a thousand.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import threading

import psutil
import pytest

from stoker import ClosedError, Inline, Loader, Processes, Threads
from tests.children import nurseries
from tests.datasets import Failing, Rows

COUNT = int(os.environ.get("STOKER_MANY_LOADERS", "25"))
FLAT_BYTES = 6 * 2**20  # what the allocator may add between the warm-up and the end
FIRSTS = list(range(0, 40, 5))


def firsts(batches) -> list[int]:
    return [int(batch[0, 0]) for batch in batches]


def used_up(make):
    with make() as loader:
        assert firsts(loader) == firsts(loader) == FIRSTS


def broken_off(make):
    with make() as loader:
        for batch in loader:
            assert firsts([batch]) == [0]
            break


def left_by_an_exception(make):
    with make() as loader, pytest.raises(ZeroDivisionError):
        [firsts([batch])[0] // 0 for batch in loader]


def left_by_an_error_of_the_dataset(make):
    loader = make(Failing(40))
    with pytest.raises(ValueError, match="thirteen"):
        firsts(loader)


def closed_with_a_batch_held(make):
    loader = make()
    held = next(iter(loader))
    loader.close()
    assert firsts([held]) == [0]


def closed_twice(make):
    loader = make()
    iterator = iter(loader)
    next(iterator)
    loader.close()
    loader.close()
    with pytest.raises(ClosedError):
        next(iterator)


def forgotten(make):
    iterator = iter(make())
    next(iterator)


def forgotten_in_a_cycle(make):
    """Only the garbage collector can find it."""
    loader = make()
    loader.myself = loader
    next(iter(loader))
    del loader
    gc.collect()


def never_started(make):
    make()
    make().close()


def two_iterators(make):
    with make() as loader:
        older = iter(loader)
        next(older)
        assert firsts(iter(loader)) == FIRSTS
        with pytest.raises(ClosedError):
            next(older)


WAYS = [
    used_up,
    broken_off,
    left_by_an_exception,
    left_by_an_error_of_the_dataset,
    closed_with_a_batch_held,
    closed_twice,
    forgotten,
    forgotten_in_a_cycle,
    never_started,
    two_iterators,
]


@pytest.fixture(autouse=True)
def quick_collections():
    """What other tests have left in memory is not gone through again and again."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def holdings() -> tuple[int, int, int]:
    """Descriptors, children and threads of this process."""
    gc.collect()
    process = psutil.Process()
    return process.num_fds(), len(process.children(recursive=True)), threading.active_count()


def costs() -> tuple[int, int]:
    """Memory of this process and its children (the nursery is one), and the descriptors of the children."""
    process = psutil.Process()
    children = process.children(recursive=True)
    return sum(each.memory_info().rss for each in [process, *children]), sum(child.num_fds() for child in children)


@pytest.mark.parametrize(
    ("workers", "count"),
    [
        (Inline(), COUNT),
        (Threads(2), COUNT),
        (Processes(2), COUNT),
        (Processes(2, start="fork"), COUNT),
        (Processes(1, start="spawn"), len(WAYS) + COUNT // 5),
    ],
    ids=repr,
)
def test_however_loaders_are_dropped_nothing_adds_up(workers, count):
    def make(dataset=None):
        return Loader(dataset or Rows(40), 5, workers=workers)

    with make() as open_all_along:  # so that the nursery need not start for each
        next(iter(open_all_along))
        warm_up = max(len(WAYS), count // 5)
        for way in itertools.islice(itertools.cycle(WAYS), warm_up):
            way(make)
        before, (rss, descriptors) = holdings(), costs()
        for way in itertools.islice(itertools.cycle(WAYS), count - warm_up):
            way(make)
            assert holdings() == before, way.__name__
        rss_after, descriptors_after = costs()
        assert rss_after - rss < FLAT_BYTES
        assert descriptors_after - descriptors <= 4, "the nursery may be a moment late with the last loader's"


@pytest.mark.parametrize("workers", [Threads(2), Processes(2), Processes(2, start="fork")], ids=repr)
def test_many_loaders_open_at_once_all_deliver_and_all_go(workers):
    """Dropped together, all started and none used up."""
    with Loader(Rows(40), 5, workers=workers) as first:
        next(iter(first))
    before = holdings()
    loaders = [Loader(Rows(40), 5, workers=workers) for _ in range(COUNT // 5)]
    assert [firsts(batches) for batches in zip(*loaders, strict=True)] == [[k] * len(loaders) for k in FIRSTS]
    for loader in loaders:
        next(iter(loader))
    del loader, loaders
    assert holdings() == before


@pytest.mark.timeout(20)
def test_a_loader_may_be_collected_in_a_thread_of_its_own():
    """The garbage collector runs in whichever thread allocates: here in a worker of the loader that it frees."""
    dropped, collected = threading.Event(), threading.Event()

    class Collecting(Rows):
        def __getitem__(self, index):
            if index == 5:
                dropped.wait()
                gc.collect()
                collected.set()
            return super().__getitem__(index)

    gc.disable()
    try:
        loader = Loader(Collecting(40), 5, workers=Threads(2))
        loader.myself = loader
        next(iter(loader))
        del loader
        dropped.set()
        assert collected.wait(10)
        for thread in threading.enumerate():
            if thread.name.startswith("stoker"):
                thread.join()
    finally:
        gc.enable()


@pytest.mark.timeout(20)
def test_a_loader_may_be_collected_while_another_one_starts_its_nursery(monkeypatch):
    """The collector runs wherever something is allocated, also where Stoker holds a lock of its own."""
    with Loader(Rows(40), 5, workers=1) as survivor:
        iterator = iter(survivor)
        next(iterator)
        forgotten = Loader(Rows(40), 5, workers=1)
        forgotten.myself = forgotten
        next(iter(forgotten))
        del forgotten
        start = subprocess.Popen

        def collect_and_start(*args, **options):
            gc.collect()
            return start(*args, **options)

        monkeypatch.setattr("stoker.workers.processes.nursery.subprocess.Popen", collect_and_start)
        nurseries()[0].kill()  # so that the survivor starts another one
        assert firsts(iterator) == FIRSTS[1:]
