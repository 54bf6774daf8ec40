"""Rows of batches: histograms, and what was going on while the consumer waited."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.observe.distribution import Histogram
from stoker.observe.recording import Recording, Waits, pack


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=200))
def test_percentiles_are_right_within_a_bucket(durations):
    histogram = Histogram()
    histogram.add(np.array(durations[::2], np.int64))
    histogram.add(np.array(durations[1::2], np.int64))
    found, exact = histogram.distribution(), sorted(durations)
    assert found.count == len(durations) == sum(count for _, count in found.counts)
    assert found.total == pytest.approx(sum(durations) / 1e9)
    assert found.largest == exact[-1] / 1e9
    for value, share in ((found.p50, 0.5), (found.p90, 0.9), (found.p99, 0.99)):
        rank = int(np.ceil(share * len(exact))) - 1
        assert value == pytest.approx(exact[rank] / 1e9, rel=0.05)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50), st.integers(1, 10**9))
def test_a_distribution_that_is_cut_is_that_of_durations_that_were(durations, most):
    whole, cut = Histogram(), Histogram()
    whole.add(np.array(durations, np.int64))
    cut.add(np.minimum(np.array(durations, np.int64), most))
    found, expected = whole.distribution().cut(most / 1e9), cut.distribution()
    assert (found.count, found.largest) == (expected.count, pytest.approx(expected.largest))
    assert found.total == pytest.approx(expected.total, rel=0.12, abs=0.12 * sum(durations) / 1e9)
    for name in ("p50", "p90", "p99"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=0.12)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=24), st.lists(st.tuples(*[st.integers(0, 80)] * 2)))
def test_what_falls_into_waits_is_counted_once(gaps, spans):
    times = np.cumsum(gaps[: len(gaps) // 2 * 2])
    begins, ends = times[::2], times[1::2]
    waiting = {t for begin, end in zip(begins, ends, strict=True) for t in range(begin, end)}
    spans = [(min(span), max(span)) for span in spans]
    expected = sum(t in waiting for begin, end in spans for t in range(begin, end))
    edges = np.array(spans, np.int64).reshape(-1, 2)
    assert Waits(begins, ends).within(edges[:, 0], edges[:, 1]) == pytest.approx(expected, abs=1e-6)


def row(worker, times, asked, handed, *, position=0):
    """``times``: free, began, fetched, written."""
    return pack(worker, 0, position, 4, 4, 100, 0, *times, times[-1], asked, 0, 0, 0, handed)


def test_of_what_ran_only_that_counts_which_ran_while_the_consumer_waited():
    recording = Recording(2)
    recording.add(row(0, (0, 100, 200, 230), asked=150, handed=240))
    recording.add(row(1, (0, 0, 400, 410), asked=300, handed=420))
    recording.fold()
    found = {name: round(station.while_waiting * 1e9) for name, station in recording.stations().items()}
    # Waits: 150 to 240 and 300 to 420.
    assert found == {
        "idle": 0,
        "fetch": 50 + 90 + 100,
        "write": 30 + 10,
        "transfer": 0,
        "ready": 10 + 10,
        "move": 0,
        "wait": 0,
        "step": 0,
    }
    steps = recording.stations()["step"].spent
    assert (steps.count, steps.total) == (1, pytest.approx(60e-9))


def test_what_was_made_during_a_wait_of_earlier_rows_counts():
    together, apart = Recording(2), Recording(2)
    for number in range(40):
        own = row(
            number % 2,
            (100 * number - 99, 100 * number - 50, 100 * number, 100 * number + 30),
            99 * number + 300,
            99 * number + 340,
        )
        for recording in (together, apart):
            recording.add(own)
        apart.fold()
    together.fold()
    whole, parts = together.stations(), apart.stations()
    assert whole["step"].spent == parts["step"].spent
    assert whole["fetch"].spent == parts["fetch"].spent
    assert together.sums() == apart.sums()
    assert parts["fetch"].while_waiting <= whole["fetch"].while_waiting


def test_the_slowest_are_kept_by_name_and_the_last_as_they_were():
    recording = Recording(1)
    for position in range(5000):
        duration = 10_000 if position in (17, 3000) else 100
        recording.add(row(0, (0, 0, duration, duration), position, position + 1, position=position))
    recording.fold()
    assert {slow.position for slow in recording.slowest()[:2]} == {17, 3000}
    assert [one.position for one in recording.recent] == list(range(5000 - 4096, 5000))
