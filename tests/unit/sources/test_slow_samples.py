"""Samples that take much longer than the others of their batch are told by a clock that is looked at after each."""

from __future__ import annotations

from itertools import accumulate

from stoker.sources import SlowSamples

MS = 10**6


def among(*milliseconds: float) -> SlowSamples | None:
    times = list(accumulate((round(duration * MS) for duration in milliseconds), initial=12345))
    return SlowSamples.among(range(100, 100 + len(milliseconds)), times)


def test_the_slowest_is_told_by_its_index():
    assert among(*[1] * 20, 300, *[1] * 20, 200) == SlowSamples(2, 498 * MS, 120, 300 * MS)


def test_samples_that_are_all_alike_are_not_slow():
    assert among(*[50] * 10) is None
    assert among() is None
    assert among(300) is None


def test_what_a_scheduler_may_take_is_not_slow():
    assert among(*[0.1] * 20, 4) is None


def test_many_slow_samples_are_no_exception():
    assert among(*[1] * 6, *[100] * 4) is None
    assert among(1, 100) is None
