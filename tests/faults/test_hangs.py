"""``timeout=``: a worker that hangs is ended, with its stack, and replaced; one that is only slow is left in peace."""

from __future__ import annotations

import functools
import os
import signal
import time

import numpy as np
import pytest

from stoker import Loader, Processes, Threads, WorkerDied
from tests.datasets import Augmented, Rows
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(120)

STARTS = ["nursery", "fork", "spawn"]
EVER_S = 600


class HangsOnce(Augmented):
    """At sample 13 it sleeps, or is stopped from outside: the first time only, which a file remembers."""

    def __init__(self, marker: str, how: str) -> None:
        super().__init__(40)
        self.marker, self.how = marker, how

    def __getitem__(self, index):
        if index == 13 and not os.path.exists(self.marker):
            open(self.marker, "x").close()
            if self.how == "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            self.doze()
        return super().__getitem__(index)

    def doze(self) -> None:
        time.sleep(EVER_S)


@functools.cache
def expected():
    with Loader(Augmented(40), 5, shuffle=True) as loader:
        return epochs(loader, 2)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("how", ["asleep", "stopped"])
def test_one_hang_changes_nothing_and_its_stack_is_in_the_log(how, start, tmp_path, caplog):
    dataset = HangsOnce(str(tmp_path / "hung"), how)
    with Loader(dataset, 5, shuffle=True, workers=Processes(2, start=start), timeout=0.5) as loader:
        assert_same(epochs(loader, 2), expected())
    (line,) = [record.getMessage() for record in caplog.records]
    assert "a timeout: it took more than 0.5 s while working on the batch" in line
    assert how == "stopped" or "in doze" in line, "a process that is stopped cannot say where it is"


def test_a_thread_that_hangs_is_left_alone_and_replaced(caplog):
    """What it writes, when it goes on at last, harms nobody."""
    import threading

    hung, go_on = threading.Event(), threading.Event()

    class Hanging(Augmented):
        def __getitem__(self, index):
            if index == 13 and not hung.is_set():
                hung.set()
                go_on.wait(EVER_S)
            return super().__getitem__(index)

    with Loader(Hanging(40), 5, shuffle=True, workers=Threads(2), timeout=0.3) as loader:
        got = epochs(loader, 1)
        go_on.set()
        assert_same([*got, *epochs(loader, 1)], expected())
    assert "go_on.wait" in caplog.records[0].getMessage()
    for thread in threading.enumerate():
        if thread.name.startswith("stoker"):
            thread.join()


@pytest.mark.parametrize("start", STARTS)
def test_a_batch_that_always_hangs_is_an_error_with_the_stack(start):
    class Stuck(Rows):
        def __getitem__(self, index):
            if index == 13:
                time.sleep(EVER_S)
            return super().__getitem__(index)

    with Loader(Stuck(40), 5, workers=Processes(2, start=start), timeout=0.3, max_deaths=2) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        with pytest.raises(WorkerDied, match=r"samples 10, 11, 12, 13, 14\).*2 times.*more than 0.3 s") as caught:
            next(iterator)
        assert "in __getitem__" in "".join(caught.value.__notes__)
        assert [int(batch[0, 0]) for batch in iterator] == [15, 20, 25, 30, 35]


@pytest.mark.parametrize(
    "known", [pytest.param(True, marks=pytest.mark.exhaustive), False], ids=["an object", "a factory"]
)
def test_a_dataset_whose_making_hangs_is_an_error(known):
    class Stuck(Rows):
        def __init__(self):
            super().__init__(40)
            if not known:
                time.sleep(EVER_S)

        def __setstate__(self, state):
            time.sleep(EVER_S)

    with Loader(Stuck() if known else Stuck, 5, workers=Processes(2), timeout=0.3, max_deaths=1) as loader:
        with pytest.raises(WorkerDied, match="more than 5 s while it made the dataset"):
            next(iter(loader))


def test_it_is_the_batch_that_is_timed_and_not_the_run_nor_the_consumer():
    """Many quick batches travel together; then each takes long, but none too long. And the consumer takes its time."""

    class Slowing(Rows):
        def __getitem__(self, index):
            if index >= 3000:
                time.sleep(0.1)
            return super().__getitem__(index)

    with Loader(Slowing(3040), 1, workers=Processes(2), timeout=0.5, max_deaths=1) as loader:
        count = 0
        for batch in loader:
            count += len(batch)
            if count == 1000:
                time.sleep(0.7)
        assert count == 3040


def test_stopped_workers_are_replaced_and_ones_that_go_on_in_time_are_not(caplog):
    with Loader(np.arange(400), 1, workers=Processes(2), prefetch=4, timeout=0.5) as loader:
        got = []
        for batch in loader:
            got.extend(batch.tolist())
            if len(got) in (50, 150):
                for pid in loader.worker_pids:
                    os.kill(pid, signal.SIGSTOP)
                    if len(got) == 50:
                        os.kill(pid, signal.SIGCONT)
    assert got == list(range(400))
    assert len(caplog.records) == 2
