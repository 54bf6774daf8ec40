"""``even_shards=False``: over all shards each sample just once, and some shards with one batch fewer than others."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker.errors import StateError
from stoker.plan import Cursor, Plan, from_state, rotation_of, to_state

shuffles = st.sampled_from([False, True, 7])
batch_sizes = st.one_of(st.none(), st.integers(1, 20))


def family(length: int, size: int | None, shards: int, **options: Any) -> list[Plan]:
    options = {"even_shards": False} | options
    return [Plan(length, size, shard=(i, shards), **options) for i in range(shards)]


def batches(plan: Plan, epoch: int = 0) -> list[list[int]]:
    return [list(plan.indices(batch)) for batch in plan.batches(epoch)]


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(state))  # type: ignore[no-any-return]


@settings(max_examples=300)
@given(st.integers(0, 300), batch_sizes, st.integers(1, 64), shuffles, st.integers(0, 3))
@example(33, 16, 2, False, 0)
def test_over_all_shards_each_sample_comes_just_once(
    length: int, size: int | None, shards: int, shuffle: bool, epoch: int
) -> None:
    found = [batches(plan, epoch) for plan in family(length, size, shards, shuffle=shuffle)]
    assert Counter(index for shard in found for batch in shard for index in batch) == Counter(range(length))
    assert all(batch for shard in found for batch in shard)


@settings(max_examples=300)
@given(st.integers(0, 300), batch_sizes, st.integers(1, 64), st.integers(1, 3), st.booleans())
def test_lengths_are_right_and_differ_by_one_at_most_the_first_shards_having_more(
    length: int, size: int | None, shards: int, times: int, drop_last: bool
) -> None:
    plans = family(length, size, shards, times=times, drop_last=drop_last)
    found = [batches(plan) for plan in plans]
    assert [len(plan) for plan in plans] == [len(shard) for shard in found]
    assert [plan.share_in(0) for plan in plans] == [sum(map(len, shard)) for shard in found]
    counts = [len(shard) for shard in found]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] - counts[-1] <= 1
    assert counts[0] == plans[0].rounds


@settings(max_examples=200)
@given(st.integers(0, 300), batch_sizes, st.integers(1, 12), shuffles, st.booleans(), st.integers(1, 3))
def test_only_a_last_round_of_fewer_samples_than_shards_is_another_than_with_even_shards(
    length: int, size: int | None, shards: int, shuffle: bool, drop_last: bool, times: int
) -> None:
    options = {"shuffle": shuffle, "drop_last": drop_last, "times": times}
    even = family(length, size, shards, even_shards=True, **options)
    uneven = family(length, size, shards, **options)
    rest = length * times % even[0].stride
    if drop_last or rest >= shards or not rest:
        assert list(map(batches, even)) == list(map(batches, uneven))
    elif times == 1:
        full = len(even[0]) - 1
        assert [batches(plan)[:full] for plan in even] == [batches(plan)[:full] for plan in uneven]


@settings(max_examples=300)
@given(st.integers(1, 60), batch_sizes, st.integers(1, 9), st.integers(2, 5), st.one_of(st.none(), st.integers(1, 15)))
def test_where_samples_rotate_each_is_used_just_so_often(
    length: int, size: int | None, shards: int, times: int, rotating: int | None
) -> None:
    plans = family(length, size, shards, times=times, rotating=rotating, shuffle=True)
    found = Counter(index for plan in plans for batch in batches(plan) for index in batch)
    assert found == Counter({index: times for index in range(length)})
    for plan in plans:
        assert rotation_of(plan, 0).count == len({index for batch in batches(plan) for index in batch})


@settings(max_examples=200)
@given(st.integers(1, 100), batch_sizes, st.integers(1, 9), st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_shard_resumes_at_any_step_in_order_or_not(
    length: int, size: int | None, shards: int, random: Any, ahead: int
) -> None:
    for plan in family(length, size, shards, shuffle=True):
        cursor, waiting = Cursor(2), list(plan.batches(2))
        while waiting:
            again = from_state(through_json(to_state(cursor, plan)), plan)
            assert list(again.remaining(plan)) == waiting
            cursor.deliver(waiting.pop(random.randrange(min(ahead, len(waiting)))), plan)
        assert cursor.at_end(plan)
        end = from_state(through_json(to_state(cursor, plan)), plan)
        assert list(end.remaining(plan)) == ([] if end.epoch == 2 else list(plan.batches(3)))
        following = end.onwards(plan)
        if len(plan):
            assert next(following).epoch == 3
        else:
            assert list(following) == [], "and not a search without end"


@settings(max_examples=200)
@given(st.integers(1, 100), batch_sizes, st.integers(1, 9), st.data())
def test_at_the_same_step_all_shards_save_the_same_state(
    length: int, size: int | None, shards: int, data: st.DataObject
) -> None:
    """So the state of any one is good for all, also in the last round, in which some have no batch."""
    plans = family(length, size, shards)
    steps = data.draw(st.integers(0, plans[0].rounds - 1))
    states = []
    for plan in plans:
        cursor = Cursor()
        for batch in list(plan.batches(0))[:steps]:
            cursor.deliver(batch, plan)
        states.append(to_state(cursor, plan))
    assert states == [states[0]] * shards
    rest = [list(from_state(states[0], plan).remaining(plan)) for plan in plans]
    assert rest == [list(plan.batches(0))[steps:] for plan in plans]


@settings(max_examples=200)
@given(
    st.integers(1, 300),
    batch_sizes,
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4)), min_size=1, max_size=4),
    shuffles,
)
def test_a_run_that_changes_its_shards_at_any_step_has_each_sample_just_once(
    length: int, size: int | None, legs: list[tuple[int, int]], shuffle: bool
) -> None:
    """Each leg is (shards, steps); the last goes on to the end of the epoch."""
    found: Counter[int] = Counter()
    state = None
    for shards, steps in [*legs, (3, length)]:
        states = []
        for plan in family(length, size, shards, shuffle=shuffle):
            cursor = Cursor() if state is None else from_state(state, plan)
            if cursor.epoch == 0:
                for batch in list(cursor.remaining(plan))[:steps]:
                    found.update(plan.indices(batch))
                    cursor.deliver(batch, plan)
            states.append(through_json(to_state(cursor, plan)))
        state = states[0]  # of the shard that has most
    assert found == Counter(range(length))


def test_it_is_part_of_a_state_and_an_older_state_is_of_even_shards() -> None:
    even, uneven = Plan(33, 16, shard=(0, 2)), Plan(33, 16, shard=(0, 2), even_shards=False)
    assert "even_shards" not in to_state(Cursor(0, 32), even)["plan"]
    assert to_state(Cursor(0, 32), uneven)["plan"]["even_shards"] is False
    with pytest.raises(StateError, match="saved with even_shards=True and this loader has even_shards=False"):
        from_state(to_state(Cursor(0, 32), even), uneven)
    with pytest.raises(StateError, match="make the loader with even_shards=False to go on"):
        from_state(to_state(Cursor(0, 32), uneven), even)


def test_out_of_order_another_number_of_shards_is_refused() -> None:
    state = to_state(Cursor(0, 0, {4, 8}), Plan(20, 2, shard=(0, 2), even_shards=False))
    with pytest.raises(StateError, match="2 shards, not at a step boundary"):
        from_state(state, Plan(20, 2, shard=(0, 4), even_shards=False))


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_anything_but_a_flag_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"even_shards is .*: pass True or False"):
        Plan(10, 4, even_shards=value)


def test_the_example_of_the_docs() -> None:
    assert [batches(plan)[1:] for plan in family(33, 16, 2, even_shards=True)] == [[[32]], [[32]]]
    assert [batches(plan)[1:] for plan in family(33, 16, 2)] == [[[32]], []]
