"""Who is ended for taking too long, and who only waits for such a one."""

from __future__ import annotations

import pytest

from stoker.engine import deadlines
from stoker.engine.deadlines import Deadlines
from stoker.workers import Death
from stoker.workers.progress import at_batch, is_waiting, nth_batch, waited

TIMEOUT = 2.0


class Bench:
    """Workers whose places, and a clock whose time, the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.places: dict[int, int] = {}
        monkeypatch.setattr(deadlines, "monotonic", lambda: self.now)
        self.deadlines = Deadlines(TIMEOUT, self.places.__getitem__)

    def begin(self, *workers: int) -> None:
        for worker in workers:
            self.places[worker] = at_batch(worker, 1)
            self.deadlines.sent(worker)

    def tick(self, *workers: int) -> None:
        """A wait begins, or ends."""
        for worker in workers:
            self.places[worker] = waited(self.places[worker])

    def after(self, seconds: float) -> list[int]:
        """Looks at the workers whenever it is time to, for so long. Those that were to be ended."""
        end, ended = self.now + seconds, []
        while (left := self.deadlines.within(None)) is not None and self.now + left <= end:
            self.now += left
            ended += [worker for worker, _ in self.deadlines.overdue()]
        self.now = end
        return ended


@pytest.fixture
def bench(monkeypatch):
    return Bench(monkeypatch)


def test_a_worker_that_stays_at_its_batch_is_ended_and_one_that_gets_on_is_not(bench):
    bench.begin(0, 1)
    assert bench.after(1.5) == []
    bench.places[1] = at_batch(1, 2)
    assert bench.after(1.0) == [0]


def test_who_waits_for_one_that_hangs_is_not_ended_with_it(bench):
    bench.begin(0, 1, 2)
    bench.tick(1, 2)
    assert bench.after(2.5) == [0]


def test_nor_when_the_consumer_was_away_for_long(bench):
    """It looks at the clock only when it waits for a batch: then both are overdue at once."""
    bench.begin(0, 1)
    bench.tick(1)
    bench.now += 50
    assert [worker for worker, _ in bench.deadlines.overdue()] == [0]


def test_who_waits_has_all_its_time_once_the_wait_is_over(bench):
    bench.begin(0, 1)
    bench.tick(1)
    assert bench.after(2.5) == [0]
    bench.deadlines.judged(Death(0, "SIGKILL (-9)"))
    bench.tick(1)
    assert bench.after(1.9) == []
    assert bench.after(2.2) == [1]


def test_wait_after_wait_is_no_long_wait(bench):
    """They look the same to somebody who looks only now and then, if it were not counted how many there were."""
    bench.begin(0)
    bench.tick(0)
    for _ in range(20):
        assert bench.after(1.0) == []
        bench.tick(0)
        bench.tick(0)


def test_where_all_wait_somebody_is_ended(bench):
    """For another loader's worker that hangs, with a cache that both use: nobody here can end that one."""
    bench.begin(0, 1)
    bench.tick(0)
    assert bench.after(1.0) == []
    bench.tick(1)
    assert bench.after(1.9) == []
    assert set(bench.after(4.0)) == {0, 1}


def test_a_place_tells_the_batch_and_whether_it_waits():
    place = at_batch(2**30, 64)
    for count in range(600):
        assert nth_batch(place) == 64
        assert is_waiting(place) == (count % 2 == 1)
        assert place >> 24 == 2**30
        place = waited(place)
    assert not is_waiting(-1)


def test_nobody_is_waited_for_longer_than_until_the_next_look(bench):
    assert bench.deadlines.within(None) is None
    assert bench.deadlines.within(7.0) == 7.0
    bench.begin(0)
    assert bench.deadlines.within(None) == pytest.approx(TIMEOUT)
    assert bench.deadlines.within(0.5) == 0.5
    bench.now += 50
    assert bench.deadlines.within(7.0) == 0.0


def test_a_worker_that_was_ended_for_taking_too_long_is_told_from_one_that_died(bench):
    bench.begin(0, 1)
    bench.tick(1)
    assert bench.after(2.5) == [0]
    assert bench.deadlines.judged(Death(1, "SIGKILL (-9)")).cause == "SIGKILL (-9)"
    hung = bench.deadlines.judged(Death(0, "SIGUSR1 (-10)", progress=at_batch(0, 1)))
    assert hung.cause == "a timeout: it took more than 2 s"
    assert hung.likely == "it hangs"
    assert bench.deadlines.judged(Death(0, "SIGKILL (-9)")).cause == "SIGKILL (-9)"
