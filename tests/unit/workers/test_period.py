"""What is measured between two looks at the number of workers."""

from __future__ import annotations

import os

import pytest

from stoker.memory import Packed
from stoker.workers import Answer, Made, Timing
from stoker.workers.auto.headroom import Headroom
from stoker.workers.auto.period import Period
from stoker.workers.run_queue import run_delay

MS = 1_000_000


def answer(free, began, written, worker=0, samples=4):
    packed = Packed(*[0] * len(Packed._fields))
    timing = Timing(free * MS, began * MS, began * MS, written * MS, written * MS)
    return Answer(worker, 0, 0, [Made(packed, samples, (), (), timing, cpu=MS)])


def headroom():
    return Headroom(list)


def period_of(*answers, end, workers=2, waited=0):
    period = Period(lambda: 0)
    for one in answers:
        period.answered(one, one.results[0].timing.written)
    period.waited(waited * MS, has_idle_worker=True)
    for now in range(answers[0].results[0].timing.written // MS, end, 10):
        period.look(now * MS, 10**6, headroom())  # the consumer asks, and there are not enough batches yet
    return period.look(end * MS, workers, headroom())


def steady(count, every=20, begin=1000):
    """Two workers, each with a batch that takes as long as two come apart."""
    return [answer(begin + every * n, begin + every * n, begin + every * (n + 2), n % 2) for n in range(count)]


def test_it_is_over_when_there_was_enough_to_measure():
    assert period_of(*steady(20), end=1020) is None, "too short"
    assert period_of(*steady(5), end=1900) is None, "too few batches"
    measured = period_of(*steady(20), end=1440)
    assert (measured.samples, measured.workers) == (80, 2)
    assert measured.throughput == pytest.approx(4 / 0.02)


def test_slow_batches_may_be_fewer():
    assert period_of(*steady(5, every=1000), end=6000) is None, "not yet 5 s"
    assert period_of(*steady(5, every=1000), end=8100) is not None


def test_the_throughput_does_not_depend_on_when_it_ends():
    rates = {round(period_of(*steady(20), end=end).throughput, 6) for end in (1440, 1450, 1459)}
    assert len(rates) == 1


def test_what_a_worker_idled_before_it_began_does_not_count():
    first, *others = steady(20)
    waited_long = answer(0, 1000, 1040)
    measured, usual = period_of(waited_long, *others, end=1440), period_of(first, *others, end=1440)
    assert measured == usual


def test_the_time_that_the_consumer_waited_is_that_of_the_period():
    period = Period(lambda: 0)
    period.waited(999 * MS, has_idle_worker=True)  # for the workers to start
    for one in steady(20):
        period.answered(one, one.results[0].timing.written)
        period.look(one.results[0].timing.written, 10**6, headroom())
    period.waited(7 * MS, has_idle_worker=True)
    period.waited(5 * MS, has_idle_worker=False)
    measured = period.look(1440 * MS, 2, headroom())
    assert (measured.waited, measured.starved) == (0.012, 0.007)


def test_a_period_in_which_the_consumer_did_something_else_is_thrown_away():
    period = Period(lambda: 0)
    for one in steady(20):
        period.answered(one, one.results[0].timing.written)
        period.look(one.results[0].timing.written, 10**6, headroom())
    assert period.look(10_000 * MS, 2, headroom()) is None
    later = steady(20, begin=10_000)
    for one in later:
        period.answered(one, one.results[0].timing.written)
        period.look(one.results[0].timing.written, 10**6, headroom())
    assert period.look(10_440 * MS, 2, headroom()) is not None


def test_a_consumer_that_waits_for_slow_batches_has_not_paused():
    period, measured = Period(lambda: 0), None
    for one in steady(4, every=4000):
        written = one.results[0].timing.written
        period.answered(one, written)
        measured = measured or period.look(written, 2, headroom())
        period.waited(4000 * MS, has_idle_worker=False)
    assert measured is not None


def test_after_a_change_some_answers_do_not_count():
    period = Period(lambda: 0)
    period.restart(10)
    for one in steady(30):
        period.answered(one, one.results[0].timing.written)
        period.look(one.results[0].timing.written, 10**6, headroom())
    assert period.look(1700 * MS, 2, headroom()).samples == 80


def test_the_memory_of_this_machine_and_of_its_processes():
    memory = Headroom(lambda: [os.getpid(), 2**22 + 1])
    free, limit = memory.available()
    assert 0 < free < limit
    assert memory.of_a_worker() > 2**20
    memory.used(3, 1000)
    memory.used(1, 2000)
    assert memory.of_slots() == 4 * 2000


def test_a_process_that_is_gone_waits_for_nothing():
    assert run_delay([2**22 + 1]) == 0
    assert run_delay([os.getpid()]) >= 0
