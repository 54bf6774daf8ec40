"""Asking for the next unit, where that may be slow, be interrupted, or fail."""

from __future__ import annotations

from itertools import islice

import pytest

from stoker.agenda.pulling import Pulling
from stoker.plan import Run


class Source:
    """Gives so many runs; before some of them, something happens."""

    def __init__(self, count, before=None):
        self.count, self.before, self.next = count, before or {}, 0

    def __call__(self, hand):
        action = self.before.pop(self.next, None)
        if action is not None:
            action()
        if self.next < self.count:
            run = Run(0, self.next, 1)
            hand.held, self.next = run, self.next + 1


class Clock:
    """In nanoseconds. It stands still unless something is slow, whatever else the machine does."""

    now = 0

    @classmethod
    def read(cls):
        return cls.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr("stoker.agenda.pulling.perf_counter_ns", Clock.read)


def slow():
    Clock.now += 5_000_000


def interrupt():
    raise KeyboardInterrupt


def failure():
    raise OSError("no")


def numbers(runs):
    return [None if run is None else run.position for run in runs]


def test_quick_ones_come_one_after_the_other():
    assert numbers(Pulling(ahead=True).runs(Source(4))) == [0, 1, 2, 3]


def test_after_a_slow_one_others_get_a_turn_first():
    assert numbers(Pulling(ahead=True).runs(Source(4, {1: slow}))) == [0, 1, None, 2, 3]


def test_not_ahead_each_is_asked_for_only_when_it_is_waited_for():
    source = Source(3)
    runs = Pulling(ahead=False).runs(source)
    assert next(runs) is None
    assert source.next == 0
    assert numbers(runs) == [0, None, 1, None, 2, None]


def test_an_interrupt_is_kept_for_whoever_drives_and_loses_nothing():
    pulling = Pulling(ahead=True)
    runs = pulling.runs(Source(4, {2: interrupt}))
    assert numbers(islice(runs, 3)) == [0, 1, None]
    assert isinstance(pulling.interrupt, KeyboardInterrupt)
    assert numbers(runs) == [2, 3]


def test_an_interrupt_right_after_a_run_was_found_does_not_lose_it():
    source = Source(2)

    def found_and_interrupted(hand):
        source(hand)
        if source.next == 1:
            raise KeyboardInterrupt

    assert numbers(Pulling(ahead=True).runs(found_and_interrupted)) == [None, 0, 1]


def test_an_error_ends_it_and_is_raised_once():
    pulling = Pulling(ahead=True)
    assert numbers(pulling.runs(Source(4, {2: failure}))) == [0, 1]
    with pytest.raises(OSError, match="no"):
        pulling.raise_error()
    pulling.raise_error()
