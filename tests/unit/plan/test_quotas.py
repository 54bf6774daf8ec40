"""Quotas: every position has one source, and all sources keep to their shares all the time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker.plan.quotas import Quotas

ordinary = st.floats(0.01, 1.0) | st.integers(1, 100)
nasty = st.sampled_from([0.0, 1e-9, 1e-300, 1e300]) | st.floats(1e-7, 1.0) | st.floats(0, 12).map(lambda x: 10**-x)
some_weights = st.lists(ordinary, min_size=1, max_size=12) | st.lists(nasty, min_size=1, max_size=40).filter(any)
SPAN = 500


def counted(quotas: Quotas, sources: int, start: int) -> np.ndarray:
    """How many positions each source had, before each of a span of positions and after the last."""
    found, _ = quotas.assigned(start, start + SPAN)
    ones = np.zeros((SPAN + 1, sources), dtype=np.int64)
    ones[np.arange(1, SPAN + 1), found] = 1
    return np.array(quotas.counts(start)) + ones.cumsum(axis=0)


@settings(max_examples=300)
@given(some_weights, st.integers(0, 10**6))
@example([1 / 3, 1 / 3, 1 / 3], 0)
@example([1.0] * 37, 100)
@example([2e-06, 3.4e-06, 0.0025, 0.0044, 0.078, 0.29, 0.63], 0)
def test_after_any_number_of_positions_each_source_has_its_share_rounded_give_or_take_one(weights, start):
    quotas = Quotas(weights)
    exact = [Fraction(repr(float(weight))) for weight in weights]
    shares = np.array([float(weight / sum(exact)) for weight in exact])
    counts = counted(quotas, len(weights), start)
    off = np.abs(counts - np.arange(start, start + SPAN + 1)[:, None] * shares)
    assert off.max() < 1.5


@pytest.mark.parametrize("weights", [(0.5, 0.3, 0.2), (1,) * 8, (0.67, 0.15, 0.045, 0.045, 0.045, 0.025, 0.02), (3, 1)])
def test_of_common_weights_it_is_never_more_than_one_off(weights):
    shares = np.array(weights) / sum(weights)
    counts = counted(Quotas(weights), len(weights), 0)
    assert np.abs(counts - np.arange(SPAN + 1)[:, None] * shares).max() <= 1


@settings(max_examples=200)
@given(some_weights, st.integers(0, 2**62 - SPAN), st.integers(0, SPAN), st.integers(0, SPAN))
def test_any_span_is_what_one_position_after_the_other_gives(weights, start, low, high):
    """Anywhere, also where a product of position and share has far more than 64 bits."""
    quotas = Quotas(weights)
    sources, before = quotas.assigned(start, start + SPAN)
    counts = counted(quotas, len(weights), start)
    assert counts[-1].tolist() == quotas.counts(start + SPAN)
    assert sum(quotas.counts(start)) == start
    assert before.tolist() == counts[np.arange(SPAN), sources].tolist()
    low, high = sorted((low, high))
    part, part_before = quotas.assigned(start + low, start + high)
    assert part.tolist() == sources[low:high].tolist()
    assert part_before.tolist() == before[low:high].tolist()


def test_a_source_of_weight_0_has_no_position():
    assert Quotas((0.0, 1.0, 0.0)).counts(10**6) == [0, 10**6, 0]
    assert set(Quotas((2, 0, 1)).assigned(0, 1000)[0].tolist()) == {0, 2}


def test_weights_are_taken_as_decimals():
    """0.1 is a tenth: after ten times as many positions as the source has, it is exactly over."""
    assert Quotas((0.1, 0.2, 0.7)).counts(10**15) == [10**14, 2 * 10**14, 7 * 10**14]


def test_the_formula_is_frozen():
    """To change what follows is to raise PLAN_VERSION: runs would resume with other samples."""
    assert Quotas((0.5, 0.3, 0.2)).assigned(0, 20)[0].tolist() == [
        0,
        1,
        0,
        2,
        0,
        1,
        0,
        2,
        0,
        1,
        0,
        1,
        0,
        2,
        0,
        1,
        0,
        2,
        0,
        1,
    ]
    assert Quotas((5, 1, 1, 3)).counts(10**12 + 7) == [500000000004, 100000000001, 100000000000, 300000000002]
