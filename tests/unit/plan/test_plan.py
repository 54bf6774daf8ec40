import pickle
import sys
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import PLAN_VERSION, Batch, Plan


def naive(plan: Plan, epoch: int) -> list[list[int]]:
    """The batches of the shard that gets everything, by slicing."""
    order = list(plan.indices(Batch(epoch, 0, plan.length, 0)))
    size = plan.batch_size or 1
    cut = [order[i : i + size] for i in range(0, len(order), size)]
    return cut[:-1] if plan.drop_last and cut and len(cut[-1]) < size else cut


plans = st.builds(
    Plan,
    st.integers(0, 600),
    st.one_of(st.none(), st.integers(1, 70)),
    shuffle=st.one_of(st.booleans(), st.integers(1, 700)),
    seed=st.integers(),
    drop_last=st.booleans(),
)


@given(plans, st.integers(0, 5))
def test_an_epoch_is_its_order_cut_into_batches(plan: Plan, epoch: int) -> None:
    batches = [list(plan.indices(batch)) for batch in plan.batches(epoch)]
    assert batches == naive(plan, epoch)
    assert len(batches) == len(plan) == plan.rounds


@given(plans, st.integers(0, 600))
def test_rounds_may_be_counted_from_any_position(plan: Plan, position: int) -> None:
    batches = list(plan.batches(1, position))
    assert [b.position for b in batches] == [b.start for b in batches]
    assert sum(b.stop - b.start for b in batches) <= max(plan.length - position, 0)
    if batches:
        assert batches[0].start == position
        assert plan.is_over(plan.next_position(batches[-1].position))
    else:
        assert plan.is_over(position)


def test_without_shuffle_indices_are_a_range() -> None:
    plan = Plan(10, 4)
    assert plan.indices(plan.batch(0, 4)) == range(4, 8)
    assert plan.batch(0, 8) == Batch(epoch=0, start=8, stop=10, position=8)


def test_epochs_and_seeds_give_other_orders_and_the_same_one_again() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        plan = Plan(100, 100, shuffle=True, seed=seed)
        return list(plan.indices(plan.batch(epoch, 0)))

    first = order(0, 0)
    others = [order(0, epoch) for epoch in range(1, 10)] + [order(seed, 0) for seed in (-1, 1, 2**64, 2**200)]
    assert first not in others
    assert len({tuple(other) for other in others}) == len(others)
    assert order(0, 0) == first


def test_a_window_of_one_is_the_same_plan_as_no_shuffle() -> None:
    assert Plan(9, 3, shuffle=1) == Plan(9, 3, shuffle=False)
    assert Plan(9, 3, shuffle=1) != Plan(9, 3, shuffle=True)


def test_no_round_begins_outside_the_epoch() -> None:
    for plan, position in [
        (Plan(10, 4), 10),
        (Plan(10, 4), -1),
        (Plan(10, 4, drop_last=True), 8),
        (Plan(0, 4), 0),
    ]:
        with pytest.raises(ValueError, match=f"no round begins at position {position} of an epoch of"):
            plan.batch(0, position)


def test_batch_seeds_differ_and_depend_on_where_the_batch_begins_only() -> None:
    plan = Plan(1000, 8, seed=3)
    seeds = [plan.batch_seed(batch) for epoch in range(3) for batch in plan.batches(epoch)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**64 for seed in seeds)
    sharded = Plan(1000, 8, seed=3, shard=(1, 4))
    assert [sharded.batch_seed(b) for b in sharded.batches(0)][:5] == seeds[1:20:4]


def test_the_plan_is_frozen() -> None:
    """If this fails, resumed runs would see other data: raise PLAN_VERSION, or undo the change."""
    assert PLAN_VERSION == 1
    shuffled = Plan(10, 5, shuffle=True, seed=7)
    nearby = Plan(12, 6, shuffle=4, seed=7)
    assert [shuffled.indices(b) for b in shuffled.batches(3)] == [[8, 7, 5, 2, 3], [0, 6, 1, 4, 9]]
    assert [nearby.indices(b) for b in nearby.batches(3)] == [[1, 2, 0, 6, 3, 5], [4, 8, 10, 9, 7, 11]]
    assert [shuffled.batch_seed(b) for b in shuffled.batches(3)] == [
        18161395119421418055,
        1724332074687318358,
    ]


def test_numpy_integers_become_ints_and_plans_pickle_and_hash() -> None:
    plan = Plan(np.int64(10), np.int32(4), shuffle=np.uint8(3), seed=np.int16(-5), shard=(np.int64(0), np.int64(2)))
    same = Plan(10, 4, shuffle=3, seed=-5, shard=(0, 2))
    assert plan == same
    assert hash(plan) == hash(same)
    assert repr(plan) == repr(same)
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert [again.indices(b) for b in again.batches(0)] == [plan.indices(b) for b in plan.batches(0)]


@pytest.mark.parametrize("shuffle", [False, True, 10**7])
@pytest.mark.parametrize("batch_size", [None, 256])
def test_a_billion_samples_start_at_once_and_take_no_memory(shuffle: bool | int, batch_size: int | None) -> None:
    began = time.perf_counter()
    tracemalloc.start()
    try:
        plan = Plan(10**9, batch_size, shuffle=shuffle, seed=99)
        assert len(plan) == -(-(10**9) // (batch_size or 1))
        assert len(plan.indices(plan.batch(0, 0))) == (batch_size or 1)
        assert len(plan.indices(plan.batch(0, 512 * 10**6))) == (batch_size or 1)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - began < 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"length": -1}, ValueError, "length is -1: pass the number of samples, 0 or more"),
        ({"length": 2.0}, TypeError, "length is 2.0, a float and not an int"),
        ({"length": True}, TypeError, "length is True, a bool and not an int"),
        ({"batch_size": 0}, ValueError, "batch_size is 0: pass 1 or more, or None for single samples"),
        ({"batch_size": "4"}, TypeError, "batch_size is '4', a str and not an int"),
        ({"batch_size": True}, TypeError, "batch_size is True, a bool and not an int"),
        ({"shuffle": 0}, ValueError, "shuffle is 0: pass True, False, or a window of 1 or more samples"),
        ({"shuffle": -4}, ValueError, "shuffle is -4"),
        ({"shuffle": None}, TypeError, "shuffle is None"),
        ({"shuffle": 0.5}, TypeError, "shuffle is 0.5, a float"),
        ({"seed": 1.5}, TypeError, "seed is 1.5, a float and not an int: pass any int"),
        ({"seed": True}, TypeError, "seed is True, a bool"),
        ({"seed": None}, TypeError, "seed is None"),
        ({"seed": 2**5000}, ValueError, "the seed has 5001 bits: pass an int of 4096 bits at most"),
        ({"length": 10**5000}, ValueError, "length is an int of 16610 bits, and 9223372036854775807 is the largest"),
        ({"length": 2**62 + 1, "shuffle": True}, ValueError, "shuffled, is too long: 4611686018427387904 in all"),
        ({"length": 2**62, "times": 2}, ValueError, "used 2 times, is too long"),
        ({"batch_size": 2**63}, ValueError, "batch_size is an int of 64 bits"),
        ({"batch_size": 2**62, "shard": (0, 2)}, ValueError, "batches of 4611686018427387904 samples on 2 shards are"),
        ({"shard": (0, 2**64)}, ValueError, "the shard count is an int of 65 bits"),
        ({"drop_last": 1}, TypeError, "drop_last is 1: pass True or False"),
        (
            {"shard": (3, 2)},
            ValueError,
            "shard index 3 is out of range for 2 shards: pass shard=(index, count) with 0 <= index < count",
        ),
        ({"shard": (-1, 1)}, ValueError, "shard index -1 is out of range for 1 shard: pass"),
        ({"shard": (0, 0)}, ValueError, "the shard count is 0"),
        ({"shard": 2}, TypeError, "shard is 2: pass shard=(index, count)"),
        ({"shard": (1, 2, 3)}, TypeError, "shard is (1, 2, 3): pass shard=(index, count)"),
        ({"shard": (0, 1.0)}, TypeError, "the shard count is 1.0, a float"),
        ({"shard": (False, 1)}, TypeError, "the shard index is False, a bool"),
    ],
)
def test_bad_arguments_say_what_to_write(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        Plan(**{"length": 10, "batch_size": 4, **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize("shuffle", [False, sys.maxsize])
def test_the_largest_numbers_will_do(shuffle: bool | int) -> None:
    """``sys.maxsize`` is how people say "all", and a ``__len__`` that it has no end."""
    plan = Plan(100, sys.maxsize, shuffle)
    assert sorted(plan.indices(plan.batch(0, 0))) == list(range(100))
    endless = Plan(sys.maxsize, 4, seed=2**4095)
    assert list(endless.indices(endless.batch(0, 40))) == [40, 41, 42, 43]
