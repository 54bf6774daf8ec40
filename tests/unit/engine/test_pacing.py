"""Runs are long where batches are quick and small, and single everywhere else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.engine.pacing import Pacing


def settled(cost_ns: int, nbytes: int, most: int = 1000) -> int:
    pacing = Pacing(seconds=0.003, nbytes=2**22 - 2**16)
    pacing.limit(most)
    for _ in range(50):
        pacing.note(pacing.size, pacing.size * cost_ns, pacing.size * nbytes)
    return pacing.size


def test_slow_or_big_batches_are_made_singly():
    assert settled(cost_ns=3_000_000, nbytes=100) == 1
    assert settled(cost_ns=1000, nbytes=2**23) == 1


def test_quick_and_small_batches_are_made_several_at_a_time():
    assert settled(cost_ns=100_000, nbytes=1000) == 30
    assert settled(cost_ns=1000, nbytes=2**20) == 3
    assert settled(cost_ns=1000, nbytes=2**20, most=2) == 2


def test_a_batch_that_turns_slow_ends_long_runs_soon():
    pacing = Pacing(seconds=0.003, nbytes=2**22 - 2**16)
    pacing.limit(1000)
    for _ in range(20):
        pacing.note(1, 10_000, 100)
    assert pacing.size > 30
    pacing.note(1, 1_000_000_000, 100)
    assert pacing.size == 1


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(0, 10**10), st.integers(0, 2**40))), st.integers(1, 100))
def test_the_size_keeps_within_its_limits(notes, most):
    pacing = Pacing(seconds=0.003, nbytes=2**22 - 2**16)
    pacing.limit(most)
    for note in notes:
        pacing.note(*note)
        assert 1 <= pacing.size <= min(most, 64)
