"""Draws by weights: their shares, their independence, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Plan, Weighted

weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=30).filter(any)


def drawn(order, length, epoch=0, seed=0):
    plan = Plan(length, 7, seed=seed, order=order)
    return [index for batch in plan.batches(epoch) for index in plan.indices(batch)]


@given(weights, st.integers(1, 60), st.integers(0, 2))
def test_only_samples_with_a_weight_are_drawn_and_as_many_as_asked_for(values, length, epoch):
    found = drawn(Weighted(values, length=length), len(values), epoch)
    assert len(found) == length
    assert all(values[index] > 0 for index in found)


@given(weights, st.integers(0, 2))
def test_without_replacement_each_comes_once(values, epoch):
    found = drawn(Weighted(values, False), len(values), epoch)
    assert sorted(found) == [index for index, weight in enumerate(values) if weight > 0]


@given(weights, st.data())
def test_the_kth_draw_is_the_same_wherever_a_plan_begins(values, data):
    plan = Plan(len(values), 4, order=Weighted(values, length=40))
    expected = drawn(Weighted(values, length=40), len(values))
    at = data.draw(st.integers(0, 9)) * 4
    assert list(plan.indices(plan.batch(0, at))) == expected[at : at + 4]


def test_draws_have_the_shares_of_their_weights():
    values, count = np.array([0, 1, 2, 3, 4, 0]), 100_000
    for epoch in range(3):
        found = np.bincount(drawn(Weighted(values, length=count), 6, epoch), minlength=6)
        expected = values / values.sum() * count
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected)).all()  # 5 standard deviations


def test_without_replacement_the_first_draw_has_the_shares_of_the_weights():
    values, order = np.array([1, 2, 5]), Weighted([1, 2, 5], False)
    firsts = Counter(drawn(order, 3, epoch)[0] for epoch in range(4000))
    expected = values / 8 * 4000
    assert all(abs(firsts[i] - expected[i]) <= 5 * expected[i] ** 0.5 for i in range(3))


def test_epochs_and_seeds_have_draws_of_their_own():
    order = Weighted(np.ones(1000))
    found = [drawn(order, 1000, epoch, seed) for epoch in range(3) for seed in range(3)]
    assert len(set(map(tuple, found))) == 9
    draws = np.array(found)
    alike = (draws[:, None] == draws[None]).sum(axis=2)[np.triu_indices(9, 1)]
    assert alike.max() < 10  # one in a thousand


def test_frozen_draws():
    """States depend on the formula: to change it is to raise PLAN_VERSION."""
    assert drawn(Weighted([1, 2, 3, 4, 5], length=12), 5) == FROZEN
    assert drawn(Weighted([1, 2, 3, 4, 5], False), 5) == FROZEN_ONCE


FROZEN = [3, 3, 2, 3, 1, 4, 1, 4, 4, 4, 4, 2]
FROZEN_ONCE = [1, 0, 4, 3, 2]


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e307])
def test_very_small_and_very_large_weights(scale):
    values = np.array([1.0, 0.0, 3.0, 9.0]) * scale
    assert set(drawn(Weighted(values, length=500), 4)) == {0, 2, 3}
    assert sorted(drawn(Weighted(values, False), 4)) == [0, 2, 3]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"weights": [1, np.nan]}, "weights\\[1\\] is nan"),
        ({"weights": [-1, 1]}, "weights\\[0\\] is -1"),
        ({"weights": [np.inf]}, "inf"),
        ({"weights": [0, 0]}, "all 2 weights are 0"),
        ({"weights": []}, "all 0 weights"),
        ({"weights": [[1], [2]]}, "shape"),
        ({"weights": ["a"]}, "not numbers"),
        ({"weights": None}, "nan|not numbers|shape"),
        ({"weights": [1, 0], "length": 0}, "length=0"),
        ({"weights": [1, 0], "length": 1.5}, "length=1.5"),
        ({"weights": [1, 0], "length": True}, "length=True"),
        ({"weights": [1, 0], "replacement": 1}, "replacement=1"),
        ({"weights": [1, 0, 2], "replacement": False, "length": 3}, "of 2 samples whose weight is above 0"),
    ],
)
def test_wrong_arguments_are_refused(wrong, error):
    with pytest.raises((TypeError, ValueError), match=error):
        Weighted(**wrong)


def test_as_many_weights_as_samples():
    with pytest.raises(ValueError, match="3 weights, and the dataset has 4 samples"):
        Plan(4, 2, order=Weighted([1, 2, 3])).positions_in(0)
