"""Items are pulled when results are asked for, in the consumer's thread, and no further than credit goes."""

from __future__ import annotations

import _thread
import itertools
import os
import signal
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from stoker import Inline, Threads
from tests.items import works


class Counted:
    """Endless, and counts how many were pulled. Not a generator: it goes on after an error."""

    def __init__(self) -> None:
        self.pulled = 0

    def __iter__(self):
        return self

    def __next__(self) -> int:
        self.pulled += 1
        return self.pulled - 1


@pytest.mark.parametrize("prefetch", [1, 2, 7])
def test_endless_items_are_pulled_no_further_than_credit(backend, prefetch):
    items = Counted()
    with stoker.stream(works.number, items, workers=backend, prefetch=prefetch) as results:
        assert items.pulled == 0
        for delivered, result in enumerate(itertools.islice(results, 60), 1):
            assert result == delivered - 1
            assert items.pulled <= delivered + backend.n * prefetch + 1


def test_inline_pulls_an_item_when_its_result_is_asked_for():
    items = Counted()
    with stoker.stream(works.number, items, prefetch=5) as results:
        for delivered, _ in enumerate(itertools.islice(results, 20), 1):
            assert items.pulled == delivered
        results.load_state_dict(results.state_dict())
        assert items.pulled == 20
        assert next(results) == 20
        assert items.pulled == 21


@given(
    workers=st.sampled_from([Inline(), Threads(1), Threads(3)]), prefetch=st.integers(1, 4), takes=st.integers(0, 20)
)
def test_however_many_are_taken(workers, prefetch, takes):
    items = Counted()
    with stoker.stream(works.number, items, workers=workers, prefetch=prefetch) as results:
        assert list(itertools.islice(results, takes)) == list(range(takes))
    assert items.pulled <= takes + workers.n * prefetch + 1


def test_items_are_pulled_in_the_consumers_thread(backend):
    def items():
        for _ in range(5):
            yield threading.get_ident()

    with stoker.stream(works.number, items(), workers=backend) as results:
        assert set(results) == {threading.get_ident()}


def test_the_first_result_does_not_wait_until_all_credit_is_used_up(backend):
    pulled = []

    def items():
        for item in itertools.count():
            pulled.append(item)
            time.sleep(0.05)  # slow to come: longer than the work takes
            yield item

    with stoker.stream(works.number, items(), workers=backend, prefetch=40) as results:
        assert next(results) == 0
        assert len(pulled) <= 25  # starting a worker takes its time, too


class Slow:
    """Endless items, each of which takes its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.pulled = seconds, 0

    def __iter__(self):
        for item in itertools.count():
            time.sleep(self.seconds)
            self.pulled += 1
            yield item


def test_where_items_are_slow_a_result_does_not_wait_for_the_next():
    items, ahead = Slow(0.3), []
    with stoker.stream(works.number, items, workers=Threads(2)) as results:
        for taken in range(1, 9):
            next(results)
            ahead.append(items.pulled - taken)
    assert ahead.count(0) >= 4, ahead  # all of them, on a quiet machine


def test_where_the_consumer_is_slower_items_are_pulled_ahead():
    items, ahead = Slow(0.002), []
    with stoker.stream(lambda item: time.sleep(0.01), items, workers=Threads(2)) as results:
        for taken in range(1, 11):
            next(results)
            ahead.append(items.pulled - taken)
            time.sleep(0.05)
    assert min(ahead[2:]) >= 1, ahead


def test_an_error_in_the_items_comes_after_all_earlier_results_and_ends_the_stream(backend):
    def items():
        yield from range(10)
        raise KeyError("no more")

    with stoker.stream(works.number, items(), workers=backend) as results:
        assert list(itertools.islice(results, 10)) == list(range(10))
        with pytest.raises(KeyError, match="no more") as caught:
            next(results)
        assert "when item 10 was asked for" in caught.value.__notes__[0]
        assert list(results) == []
        assert list(results) == []


def test_an_error_in_iter_comes_out_at_the_first_result(backend):
    class Broken:
        def __iter__(self):
            raise OSError("not there")

    with stoker.stream(works.number, Broken(), workers=backend) as results, pytest.raises(OSError, match="not there"):
        next(results)


class InterruptedOnce(Counted):
    """Ctrl-C comes while item 12 is being got."""

    def __next__(self) -> int:
        if self.pulled == 12 and not hasattr(self, "done"):
            self.done = True
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        return super().__next__()


def test_ctrl_c_in_the_items_loses_nothing(backend):
    got = []
    with stoker.stream(works.number, InterruptedOnce(), workers=backend) as results:
        with pytest.raises(KeyboardInterrupt):
            got.extend(result for result in results)
        got.extend(itertools.islice(results, 20))
    assert got == list(range(len(got)))


def test_ctrl_c_right_after_an_item_has_come_loses_nothing(backend):
    """Python looks for signals between its own instructions only, so this one is seen when the item has been given."""
    got = []
    items = itertools.chain([0, 1, 2], map(_thread.interrupt_main, [signal.SIGINT]), [4, 5, 6])
    with stoker.stream(works.number, items, workers=backend) as results:
        with pytest.raises(KeyboardInterrupt):
            got.extend(result for result in results)
        got.extend(results)
    assert got == [0, 1, 2, None, 4, 5, 6]


def test_ctrl_c_in_the_callable_loses_nothing(backend):
    interrupted = []

    def to(result):
        if result == 4 and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return result

    with stoker.stream(works.number, iter(range(10)), workers=backend, to=to) as results:
        assert list(itertools.islice(results, 4)) == [0, 1, 2, 3]
        with pytest.raises(KeyboardInterrupt):
            next(results)
        assert list(results) == [4, 5, 6, 7, 8, 9]


def test_ctrl_c_in_inline_work_loses_nothing():
    with stoker.stream(works.interrupted, iter(range(4))) as results:
        assert [next(results), next(results)] == [0, 1]
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                next(results)
