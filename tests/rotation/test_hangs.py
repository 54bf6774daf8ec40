"""``timeout=`` while samples rotate: who hangs is ended, and who only waits for it is not."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter

import pytest

from stoker import Loader, Processes, Rotation, Threads
from tests.datasets import Augmented, Rows
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(90)

EVER_S = 600
KEPT = Rotation(3, size=6)


def wanted(n: int = 24) -> list:
    with Loader(Augmented(n), 4, rotation=KEPT) as oracle:
        return epochs(oracle, 2)


class HangsOnce(Augmented):
    """At sample 4, which three of the first batches need."""

    def __init__(self, marker: str, how: str) -> None:
        super().__init__(24)
        self.marker, self.how = marker, how

    def __getitem__(self, index):
        if index == 4 and not os.path.exists(self.marker):
            open(self.marker, "x").close()
            if self.how == "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(EVER_S)
        return super().__getitem__(index)


@pytest.mark.parametrize("start", ["nursery", "fork"])
@pytest.mark.parametrize("how", ["asleep", "stopped"])
def test_one_hang_costs_one_worker_though_others_wait_for_it(how, start, tmp_path, caplog):
    dataset = HangsOnce(str(tmp_path / "hung"), how)
    with Loader(dataset, 4, workers=Processes(4, start=start), rotation=KEPT, timeout=0.5) as loader:
        assert_same(epochs(loader, 2), wanted())
    (line,) = [record.getMessage() for record in caplog.records]
    assert re.search(
        r"a timeout: it took more than 0.5 s while working on the batch .* of epoch 0 \((samples )?.*\b4\b", line
    )


class Stuck(Rows):
    """Sample 5 never comes to an end."""

    def __init__(self, seconds: float = EVER_S) -> None:
        super().__init__(18)
        self.seconds = seconds

    def __getitem__(self, index):
        if index == 5:
            time.sleep(self.seconds)
        return super().__getitem__(index)


@pytest.mark.parametrize("start", ["nursery", "fork"])
def test_a_sample_that_always_hangs_is_left_out_and_no_other(start):
    """Three batches need it, and each of its neighbours is needed by those that wait."""
    workers = Processes(3, start=start)
    with Loader(Stuck(), 4, workers=workers, rotation=KEPT, timeout=0.3, max_deaths=1, on_error="skip") as loader:
        found = Counter(int(row[0]) for batch in loader for row in batch)
        assert loader.stats().skipped == 3
    assert found == Counter({index: 3 for index in range(18) if index != 5})


def test_a_thread_that_always_hangs_is_given_up_and_its_sample_left_out():
    with Loader(
        Stuck(seconds=1.2), 4, workers=Threads(3), rotation=KEPT, timeout=0.3, max_deaths=1, on_error="skip"
    ) as loader:
        found = Counter(int(row[0]) for batch in loader for row in batch)
    assert found == Counter({index: 3 for index in range(18) if index != 5})
    join_all()


def join_all() -> None:
    """Threads that were given up come to their end by themselves."""
    for thread in threading.enumerate():
        if thread.name.startswith("stoker"):
            thread.join()


def test_a_thread_that_is_given_up_with_its_claims_harms_nobody_when_it_goes_on(caplog):
    """It comes to put what it had claimed, counts uses, and claims more, while others do the same."""
    hung, go_on = threading.Event(), threading.Event()

    class Hanging(Augmented):
        def __getitem__(self, index):
            if index == 4 and not hung.is_set():
                hung.set()
                go_on.wait(EVER_S)
            return super().__getitem__(index)

    with Loader(Hanging(24), 4, workers=Threads(4), rotation=KEPT, timeout=0.3) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append({key: value.copy() for key, value in batch.items()})
            if step == 3:
                go_on.set()
        assert_same([got, *epochs(loader, 1)], wanted())
    assert len(caplog.records) == 1
    join_all()


def test_many_threads_that_are_given_up_again_and_again():
    """Each hangs now and then, for longer than it may, in the middle of samples that others wait for."""

    class Moody(Augmented):
        def __getitem__(self, index):
            sample = super().__getitem__(index)  # what is random first: its numbers are the sample's own
            if index % 7 == 3 and Counter(moods)[index] < 1:
                moods.append(index)
                time.sleep(0.4)
            return sample

    moods: list[int] = []
    with Loader(Moody(24), 4, workers=Threads(3), rotation=KEPT, timeout=0.15, max_deaths=50) as loader:
        assert_same(epochs(loader, 2), wanted())
    join_all()


def test_a_thread_that_is_still_making_its_dataset_opens_nothing_of_a_loader_that_was_closed(tmp_path):
    """The descriptor that it was to open may be another file's by then."""
    making, go_on, made = threading.Event(), threading.Event(), []

    def slowly() -> Rows:
        made.append(1)
        if len(made) > 1:  # in the second thread
            making.set()
            go_on.wait(EVER_S)
        return Rows(24)

    others = []
    with Loader(slowly, 4, workers=Threads(2), rotation=KEPT) as loader:
        iterator = iter(loader)
        next(iterator)
        making.wait()
    for number in range(20):  # whatever numbers have become free
        (tmp_path / str(number)).write_bytes(b"mine" * 4096)
        others.append(open(tmp_path / str(number), "r+b", 0))  # noqa: SIM115
    go_on.set()
    join_all()
    for file in others:
        assert file.read() == b"mine" * 4096
        file.close()
