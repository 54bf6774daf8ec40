"""Plans with an order of one's own: drawn by weights, given, or cut into batches by length."""

import itertools
import json
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import StateError
from stoker.plan import Buckets, Cursor, Given, Plan, Weighted, from_state, to_state

LENGTH = 12  # of the dataset

indices = st.lists(st.integers(0, LENGTH - 1), max_size=40)
shuffles = st.sampled_from([False, True, 3])


@st.composite
def plans(draw, **fixed):
    """Plans of shard 0, of all kinds of orders."""
    shuffle = draw(st.booleans())
    weights = [0.0, *draw(st.lists(st.floats(0.1, 9), min_size=LENGTH - 1, max_size=LENGTH - 1))]
    lengths = draw(st.lists(st.integers(0, 20), min_size=LENGTH, max_size=LENGTH))
    size = draw(st.integers(1, 5))
    orders = st.sampled_from(
        [
            Given(draw(indices)),
            Weighted(weights, length=draw(st.integers(1, 40))),
            Weighted(weights, False, length=draw(st.integers(1, LENGTH - 1))),
            Buckets(lengths).ordering(size),
            Buckets(lengths, draw(st.sampled_from([[], [5], [3, 9]])), max_tokens=30).ordering(size),
        ]
    )
    order = draw(orders)
    size = 1 if getattr(order, "holds_batches", False) else size
    options = {"drop_last": draw(st.booleans()), "even_shards": draw(st.booleans()), **fixed}
    seed, shards = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    return Plan(LENGTH, size, shuffle, seed, shard=(0, shards), order=order, **options)


def family(plan, shards=None):
    shards = shards or plan.shard[1]
    return [replace(plan, shard=(shard, shards)) for shard in range(shards)]


def read(plan, cursor=None):
    cursor = cursor or Cursor()
    return [list(plan.indices(batch)) for batch in cursor.remaining(plan)]


@given(plans(drop_last=False, even_shards=False), st.integers(1, 5), st.integers(0, 2))
def test_all_shards_together_have_the_same_samples_as_one(plan, shards, epoch):
    alone = replace(plan, shard=(0, 1))
    together = [index for one in family(plan, shards) for batch in one.batches(epoch) for index in one.indices(batch)]
    assert Counter(together) == Counter(index for batch in alone.batches(epoch) for index in alone.indices(batch))


@given(plans(even_shards=True), st.integers(0, 2))
def test_even_shards_have_the_same_number_of_batches_and_leave_nothing_out(plan, epoch):
    shards = family(plan)
    assert {one.batch_count(epoch) for one in shards} == {len(list(plan.batches(epoch)))}
    assert all(len(list(one.batches(epoch))) == one.batch_count(epoch) for one in shards)
    if not plan.drop_last:
        found = {index for one in shards for batch in one.batches(epoch) for index in one.indices(batch)}
        alone = replace(plan, shard=(0, 1))
        assert found == {index for batch in alone.batches(epoch) for index in alone.indices(batch)}
        assert plan.share_in(epoch) == sum(batch.stop - batch.start for batch in plan.batches(epoch))


@given(plans(), st.integers(1, 4), st.data())
def test_a_run_resumes_at_any_step_with_any_number_of_shards(plan, shards, data):
    batches = list(plan.batches(0))
    steps = data.draw(st.integers(0, max(plan.rounds - 1, 0)))
    cursor = Cursor()
    for batch in batches[:steps]:
        cursor = cursor.after(batch, plan)
    state = json.loads(json.dumps(to_state(cursor, plan)))
    assert read(plan, from_state(state, plan)) == [list(plan.indices(batch)) for batch in batches[steps:]]
    others = family(plan, shards)
    resumed = [from_state(state, other) for other in others]
    assert {cursor.position for cursor in resumed} == {resumed[0].position}
    if not plan.drop_last and not plan.even_shards and resumed[0].epoch == 0:
        rest = [i for other, at in zip(others, resumed, strict=True) for batch in read(other, at) for i in batch]
        before = [
            i
            for one in family(plan)
            for batch in one.batches(0)
            if batch.position < resumed[0].position
            for i in one.indices(batch)
        ]
        alone = replace(plan, shard=(0, 1))
        assert Counter(before + rest) == Counter(i for batch in read(alone) for i in batch)


@given(plans())
def test_a_plan_with_an_order_survives_pickling_and_keeps_no_epochs(plan):
    expected = read(plan)
    again = pickle.loads(pickle.dumps(plan, protocol=5))
    assert again == plan
    assert hash(again) == hash(plan)
    assert not again._orders
    assert read(again) == expected


def test_large_arrays_of_an_order_travel_out_of_band():
    for order in (Given(np.arange(10**5)), Weighted(np.ones(10**5)), Buckets(np.arange(1, 10**5 + 1)).ordering(8)):
        buffers = []
        pickled = pickle.dumps(Plan(10**5, 8, order=order), protocol=5, buffer_callback=buffers.append)
        assert len(pickled) < 3000
        assert buffers


ORDERS = [
    None,
    Given([1, 2, 3]),
    Given([3, 2, 1]),
    Weighted(np.ones(LENGTH)),
    Weighted(np.ones(LENGTH), False),
    Weighted(np.ones(LENGTH), length=5),
    Weighted(np.arange(LENGTH)),
    Buckets(np.arange(LENGTH)).ordering(4),
    Buckets(np.arange(LENGTH), [3]).ordering(4),
]


@pytest.mark.parametrize(
    ("theirs", "ours"), [*itertools.product(ORDERS, ORDERS)], ids=lambda order: type(order).__name__
)
def test_a_state_of_another_order_is_refused(theirs, ours):
    state = to_state(Cursor(), Plan(LENGTH, 4, order=theirs))
    assert ("order" in state["plan"]) == (theirs is not None)
    if theirs is ours:
        assert from_state(state, Plan(LENGTH, 4, order=ours)) == Cursor()
    else:
        with pytest.raises(StateError, match="order="):
            from_state(state, Plan(LENGTH, 4, order=ours))


@given(indices, shuffles, st.integers(0, 3))
def test_given_indices_come_as_they_are_or_shuffled(values, shuffle, epoch):
    plan = Plan(LENGTH, 3, shuffle, order=Given(values))
    found = [index for batch in plan.batches(epoch) for index in plan.indices(batch)]
    assert Counter(found) == Counter(values)
    if shuffle is False:
        assert found == values
    else:  # by the places that a dataset of as many samples would have
        places = Plan(len(values), 3, shuffle)
        assert found == [values[i] for batch in places.batches(epoch) for i in places.indices(batch)]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ([-1], "order\\[0\\] is -1"),
        ([0, LENGTH], "order\\[1\\] is 12, and the dataset has 12"),
        ([1.0], "float64"),
        ([True], "True and False"),
        ([[1], [2]], "shape"),
        ([[1], [2, 3]], "in a row"),
        (["a"], "text"),
        (np.array([2**63], dtype=np.uint64), "no dataset"),
        (7, "shape"),
        ([None], "in a row"),
    ],
)
def test_wrong_indices_are_refused(wrong, error):
    with pytest.raises((TypeError, ValueError), match=error):
        Plan(LENGTH, 3, order=Given(wrong)).positions_in(0)


def test_no_rotation_with_an_order():
    with pytest.raises(ValueError, match="order"):
        Plan(LENGTH, 3, times=2, order=Given([1]))
