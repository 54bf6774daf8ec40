"""``retry=``: what failed in a way that may pass is tried again where it failed, and is the same sample then."""

from __future__ import annotations

import random
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from stoker import Cache, Inline, Loader, Processes, Retry, Rotation, Threads
from tests.datasets import Rows
from tests.lifecycle.storms import Interrupted

QUICK = Retry(3, backoff=0.001)
BACKENDS = [Inline(), Threads(2), Processes(2)]


class Flaky(Rows):
    """The first tries of some samples fail, after they have drawn random numbers."""

    def __init__(self, n=20, *, failures=2, error=OSError, bad=(3, 4, 11)):
        super().__init__(n)
        self.failures, self.error, self.bad = failures, error, bad
        self.tries = {}  # by thread and index

    def __getitem__(self, index):
        drawn = random.random(), float(np.random.rand()), float(np.random.standard_normal())
        own = threading.get_ident(), index  # another thread may make it for the next epoch already
        self.tries[own] = self.tries.get(own, 0) + 1
        if index in self.bad and self.tries[own] % (self.failures + 1):
            raise self.error(f"no connection for {index}")
        return np.array([index, *drawn])


class FlakyTogether(Flaky):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def epoch(dataset, **options):
    with Loader(dataset, 5, shuffle=True, **{"workers": Inline(), "retry": QUICK} | options) as loader:
        return [batch.copy() for batch in loader], loader.stats()


@pytest.mark.parametrize("workers", BACKENDS, ids=str)
def test_samples_are_the_same_as_if_nothing_had_failed(workers):
    expected, _ = epoch(Flaky(bad=()))
    found, stats = epoch(Flaky(), workers=workers)
    np.testing.assert_array_equal(expected, found)
    assert (stats.retries, stats.skipped) == (6, 0)
    assert "retries: 6" in stats.to_text()


def test_with_getitems_the_whole_call_is_repeated():
    expected, _ = epoch(FlakyTogether(bad=()))
    found, stats = epoch(FlakyTogether(failures=1, bad=(3,)))
    np.testing.assert_array_equal(expected, found)
    assert stats.retries == 1


@pytest.mark.parametrize("keeping", ["cache", "rotation"])
def test_samples_that_are_kept_are_tried_again(keeping, tmp_path):
    options = {"cache": lambda name: Cache(tmp_path / name), "rotation": lambda _: Rotation(2)}[keeping]
    expected, _ = epoch(Flaky(bad=()), **{keeping: options("sound")})
    found, stats = epoch(Flaky(), **{keeping: options("flaky")})
    np.testing.assert_array_equal(expected, found)
    assert stats.retries == 6


@pytest.mark.parametrize("workers", BACKENDS, ids=str)
def test_after_the_last_try_on_error_applies(workers):
    dataset = Flaky(failures=10**6, bad=(3,))
    with pytest.raises(OSError, match="no connection for 3") as raised:
        epoch(dataset, workers=workers)
    assert any("tried 4 times" in note for note in raised.value.__notes__)
    skipping, stats = epoch(dataset, workers=workers, on_error="skip")
    assert sum(map(len, skipping)) == 19
    assert (stats.skipped, stats.retries) == (1, 3)
    replacing, stats = epoch(dataset, workers=workers, on_error="replace")
    assert [len(batch) for batch in replacing] == [5] * 4
    assert (stats.replaced, stats.retries) == (1, 3)


def test_other_errors_are_raised_at_once():
    dataset = Flaky(error=ValueError)
    with pytest.raises(ValueError, match="no connection"):
        epoch(dataset)
    assert max(dataset.tries.values()) == 1
    found, _ = epoch(Flaky(error=ValueError), retry=Retry(2, backoff=0, on=ValueError))
    assert len(found) == 4


@pytest.mark.parametrize("workers", BACKENDS, ids=str)
def test_items_of_a_stream_are_tried_again(workers):
    failed = {}

    def work(item):
        drawn = random.random()
        failed[item] = failed.get(item, 0) + 1
        if item % 3 == 0 and failed[item] < 3:
            raise ConnectionError("lost")
        return item, drawn

    with stoker.stream(work, range(7), workers=workers, retry=QUICK) as results:
        found = list(results)
        assert results.stats().retries == 6
    with stoker.stream(lambda item: (item, random.random()), range(7)) as results:
        assert found == list(results)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_parts_of_chunk_files_are_tried_again_when_they_are_counted_and_when_they_are_read(on_error, tmp_path):
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.arange(5) + 5 * number)
    tries = []

    def read(path):
        tries.append(path)
        if "2.npy" in str(path) and sum("2.npy" in str(one) for one in tries) % 3:
            raise OSError("no connection")
        return np.load(path)

    files = sorted(map(str, tmp_path.glob("*.npy")))
    with Loader(stoker.Chunks(files, read=read), 5, workers=Inline(), retry=QUICK, on_error=on_error) as loader:
        assert sorted(np.concatenate(list(loader)).tolist()) == list(range(20))
        assert loader.stats().retries == 2, "those of the reading"
        assert loader.stats().skipped == 0
    assert len(tries) == 4 * 2 + 2 * 2


def test_a_number_is_a_number_of_times():
    dataset = Flaky(failures=2, bad=(3,))
    dataset.tries[threading.get_ident(), 3] = 1
    found, stats = epoch(dataset, retry=1)
    assert (len(found), stats.retries) == (4, 1)


@pytest.mark.parametrize("workers", [Inline(), Threads(1), Processes(1)], ids=str)
def test_who_closes_does_not_wait_for_the_next_try(workers, tmp_path):
    """The wait would be half a minute at least."""
    began = tmp_path / "began"

    class Slow(Rows):
        def __getitem__(self, index):
            began.touch()
            raise OSError("never")

    loader = Loader(Slow(), 4, workers=workers, retry=Retry(3, backoff=60))

    def take():
        with pytest.raises((OSError, stoker.ClosedError)):
            next(iter(loader))

    thread = threading.Thread(target=take)
    thread.start()
    while not began.exists():
        thread.join(0.01)
    before = time.monotonic()
    loader.close()
    thread.join()
    assert time.monotonic() - before < 8


def test_ctrl_c_ends_the_wait_inline():
    import signal

    class Interrupted(Rows):
        def __getitem__(self, index):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            raise OSError("never")

    def interrupt(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    before = time.monotonic()
    try:
        with Loader(Interrupted(), 4, workers=Inline(), retry=Retry(3, backoff=60)) as loader:
            with pytest.raises(KeyboardInterrupt):
                next(iter(loader))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.monotonic() - before < 8


def test_an_interrupt_in_the_wait_leaves_no_lock_behind():
    """As one right after the lock of an Event was taken: who goes on would wait for that for ever."""

    class Failing(Rows):
        def __getitem__(self, index):
            raise OSError("once more")

    def interrupt(frame, event, _):
        if event == "c_return" and frame.f_code is threading.Condition.__enter__.__code__:
            sys.setprofile(None)
            raise Interrupted

    with Loader(Failing(8), 4, workers=Inline(), retry=Retry(2, backoff=0.001)) as loader:
        batches = iter(loader)
        sys.setprofile(interrupt)
        with pytest.raises((OSError, Interrupted)):
            next(batches)
        sys.setprofile(None)
        with pytest.raises(OSError, match="once more"):
            next(batches)


def test_the_timeout_of_a_worker_holds_over_all_tries():
    class Never(Rows):
        def __getitem__(self, index):
            if index == 2:
                raise OSError("never")
            return index

    options = {"workers": Processes(1), "timeout": 0.5, "max_deaths": 1, "on_error": "skip"}
    with Loader(Never(8), 4, retry=Retry(1, backoff=60), **options) as loader:
        assert [batch.tolist() for batch in loader] == [[0, 1, 3], [4, 5, 6, 7]]


@given(st.integers(0, 100), st.floats(0, 60), st.floats(0, 1))
def test_waits_grow_by_two_up_to_a_minute_and_lose_half_at_most(nth, backoff, luck):
    wait = Retry(backoff=backoff).wait(nth, luck)
    whole = min(backoff * 2**nth, 60)
    assert whole / 2 <= wait * 1.000001
    assert wait <= whole


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Retry(-1), ValueError, "from 0 to 100"),
        (lambda: Retry(1.5), TypeError, "pass a number of times"),
        (lambda: Retry(backoff=-0.1), ValueError, "a number of seconds"),
        (lambda: Retry(backoff=float("nan")), ValueError, "a number of seconds"),
        (lambda: Retry(backoff="1"), TypeError, "a number of seconds"),
        (lambda: Retry(on=KeyboardInterrupt), TypeError, "a class of exceptions"),
        (lambda: Retry(on=()), TypeError, "a class of exceptions"),
        (lambda: Retry(on="OSError"), TypeError, "a class of exceptions"),
        (lambda: Loader(Rows(), retry=True), TypeError, r"stoker\.Retry\("),
        (lambda: Loader(Rows(), retry=None), TypeError, r"stoker\.Retry\("),
        (lambda: stoker.stream(abs, [1], retry="3"), TypeError, r"stoker\.Retry\("),
        (lambda: Loader(Rows(), retry=-2), ValueError, "from 0 to 100"),
    ],
)
def test_wrong_arguments_are_said_so_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()
