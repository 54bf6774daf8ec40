"""A step is the place of a batch in its epoch, and passing over batches is taking them without looking."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import MAX_EPOCH, Cursor, Plan, batch_at, from_state, passed_over, to_state

plans = st.builds(
    Plan,
    st.integers(0, 80),
    st.one_of(st.none(), st.integers(1, 9)),
    shuffle=st.sampled_from([False, True, 5]),
    drop_last=st.booleans(),
    shard=st.sampled_from([(0, 1), (0, 3), (2, 3)]),
    times=st.sampled_from([1, 1, 3]),
    even_shards=st.booleans(),
)


def ahead(cursor: Cursor, plan: Plan, count: int) -> list:
    return list(islice(cursor.onwards(plan), count))


@given(plans, st.integers(0, 5))
def test_each_step_is_the_batch_that_comes_there(plan: Plan, epoch: int) -> None:
    assert [batch_at(plan, epoch, step) for step in range(len(plan))] == list(plan.batches(epoch))
    for step in (-1, len(plan), len(plan) + 7):
        with pytest.raises(IndexError, match=f"no step {step}: it has {len(plan)} batches"):
            batch_at(plan, epoch, step)


@given(plans.filter(len), st.randoms(use_true_random=False), st.integers(0, 40), st.integers(1, 6), st.integers(0, 90))
def test_what_follows_is_the_stream_without_the_batches_that_were_passed_over(
    plan: Plan, random: Random, taken: int, window: int, count: int
) -> None:
    cursor = Cursor(2)
    for _ in range(min(taken, len(plan))):
        cursor.deliver(random.choice(list(islice(cursor.remaining(plan), window))), plan)
    expected = ahead(cursor, plan, count + 20)[count:]
    after = passed_over(cursor, plan, count)
    assert ahead(after, plan, 20) == expected
    assert not after.at_end(plan)
    split = random.randint(0, count)
    assert passed_over(passed_over(cursor, plan, split), plan, count - split) == after


@given(st.integers(20, 80), st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(0, 40))
def test_it_is_right_where_a_run_goes_on_with_another_number_of_shards(
    length: int, size: int, before: int, now: int, count: int
) -> None:
    old = Plan(length, size, shard=(0, before))
    cursor = Cursor(0, old.next_position(0))
    new = replace(old, shard=(now - 1, now))
    cursor = from_state(to_state(cursor, old), new)
    assert ahead(passed_over(cursor, new, count), new, 9) == ahead(cursor, new, count + 9)[count:]


def test_failures_count_in_the_epoch_that_it_stays_in_and_not_in_the_next() -> None:
    plan = Plan(10, 2)
    assert passed_over(Cursor(0, 2, skipped=3), plan, 2) == Cursor(0, 6, skipped=3)
    assert passed_over(Cursor(0, 2, skipped=3), plan, 4) == Cursor(1, 0)


def test_nothing_is_as_far_away_as_it_is_slow() -> None:
    plan = Plan(10**9, 1, shuffle=True)
    assert passed_over(Cursor(), plan, 10**15 + 7) == Cursor(10**6, 7)


def test_no_batches_and_no_epochs_are_said_so() -> None:
    assert passed_over(Cursor(), Plan(0, 4), 0) == Cursor()
    with pytest.raises(ValueError, match=r"skip\(3\): an epoch of 0 samples has no batches"):
        passed_over(Cursor(), Plan(0, 4), 3)
    with pytest.raises(ValueError, match="is the last: pass a smaller number"):
        passed_over(Cursor(MAX_EPOCH), Plan(4, 4), 3)
