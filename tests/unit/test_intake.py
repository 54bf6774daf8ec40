"""The intake: what the consumer is offered, and what counts as taken, whatever the engine does."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.agenda import IndexedAgenda
from stoker.engine import Delivery
from stoker.errors import ClosedError
from stoker.intake import Intake
from stoker.interrupts import Hand
from stoker.observe import ErrorPolicy, Failures, Meter
from stoker.plan import Plan
from stoker.sources import IndexedSource


class FakeFeed:
    """Delivers what is left of the agenda, batch after batch, or what the test has put in the place of one."""

    def __init__(self, hand: Hand[Delivery]) -> None:
        self.is_sound, self.seeks, self.halts = True, 0, 0
        self.instead: dict[int, Delivery | BaseException] = {}  # by position
        self._hand = hand

    def seek(self, units: Any, warm_up: float) -> None:
        self.seeks += 1
        self._units, self._runs = units, units.runs(lambda: 1)

    def take(self) -> Delivery | None:
        if self._hand.held is None:
            run = next(self._runs)
            batch = self._units.batch(run.epoch, run.position)
            found = self.instead.pop(batch.position, None)
            if isinstance(found, BaseException):
                raise found
            self._hand.held = found or Delivery(batch, data=[*range(batch.start, batch.stop)], samples=2)
        return self._hand.held

    def halt(self) -> bool:
        self.halts += 1
        return True

    def length(self) -> int:
        return 8


class FakeEngine:
    def __init__(self, hand: Hand[Delivery]) -> None:
        self.feed = FakeFeed(hand)
        self.is_closed = self.is_stale = False
        self.renewals = 0

    def check_usable(self) -> None:
        if self.is_closed:
            raise ClosedError("it was closed")

    def started(self) -> FakeFeed:
        return self.feed

    def has_changed(self) -> bool:
        return self.is_stale

    def renew(self) -> None:
        self.renewals, self.is_stale = self.renewals + 1, False

    def end(self) -> None:
        self.is_closed = True


class Bench:
    def __init__(self, dataset: Any = range(8)) -> None:
        source = IndexedSource.of(dataset)
        length = 0 if source.is_factory else len(dataset)
        self.dataset, self.agenda = dataset, IndexedAgenda(Plan(length, 2), source, lambda plan: 1)
        hand: Hand[Delivery] = Hand()
        self.engine, self.meter = FakeEngine(hand), Meter(1)
        self.intake = Intake(self.agenda, self.engine, hand, None, self.meter, Failures(ErrorPolicy("skip")))

    def offer(self) -> Any:
        delivery = self.intake.offer()
        return None if delivery is None else delivery.data

    def take(self) -> Any:
        delivery = self.intake.offer()
        if delivery is not None:
            delivery.is_taken = True
        return None if delivery is None else delivery.data

    @property
    def position(self) -> int:
        return self.intake.cursor().position


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_each_batch_is_offered_until_it_is_taken_and_then_the_next(bench):
    assert [bench.offer(), bench.offer()] == [[0, 1], [0, 1]]
    assert bench.position == 0
    assert [bench.take(), bench.position] == [[0, 1], 2]
    assert [bench.take(), bench.take(), bench.take(), bench.take()] == [[2, 3], [4, 5], [6, 7], None]
    assert (bench.engine.feed.seeks, bench.meter.stats().batches) == (1, 4)


def test_an_interrupt_on_the_way_loses_nothing(bench):
    bench.take()
    bench.engine.feed.instead[2] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench.offer()
    bench.engine.feed.is_sound = False
    assert bench.offer() == [2, 3]
    assert bench.engine.feed.seeks == 2


def test_a_batch_that_fails_is_passed_over_if_the_consumer_goes_on(bench):
    bench.take()
    failed = Delivery(bench.agenda.plan.batch(0, 2), error=ValueError("sample 3"), samples=2)
    bench.engine.feed.instead[2] = failed
    with pytest.raises(ValueError, match="sample 3"):
        bench.offer()
    assert bench.position == 2, "a state that is saved now has it tried again"
    assert bench.take() == [4, 5]


def test_a_batch_of_which_all_is_left_out_is_not_offered(bench):
    bench.take()
    bench.engine.feed.instead[2] = Delivery(bench.agenda.plan.batch(0, 2))
    assert bench.take() == [4, 5]


def test_whoever_jumps_is_offered_what_comes_there(bench):
    bench.take()
    bench.intake.jump(bench.agenda.progress.go_to(1))
    assert bench.take() == [0, 1]
    assert (bench.intake.cursor().epoch, bench.position) == (1, 2)


def test_a_length_that_only_workers_know_is_asked_for_once():
    bench = Bench(lambda: range(8))
    assert [bench.take() for _ in range(5)][-2:] == [[6, 7], None]


def test_a_dataset_that_has_grown_between_epochs_is_counted_and_sent_anew():
    bench = Bench([*range(4)])
    assert [bench.take() for _ in range(3)] == [[0, 1], [2, 3], None]
    bench.intake.jump(bench.agenda.progress.go_to(1))
    bench.dataset.extend([4, 5])
    bench.intake.begin_epoch()
    assert bench.engine.renewals == 1
    assert [bench.take() for _ in range(4)] == [[0, 1], [2, 3], [4, 5], None]


def test_at_the_end_what_was_taken_counts_and_what_was_offered_does_not(bench):
    bench.take()
    bench.intake.end()
    assert bench.position == 2
    other = Bench()
    other.offer()
    other.intake.end()
    assert other.position == 0
