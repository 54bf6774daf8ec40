from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Batch, Cursor, Plan

plans = st.builds(
    Plan,
    st.integers(0, 80),
    st.one_of(st.none(), st.integers(1, 9)),
    drop_last=st.booleans(),
    shard=st.sampled_from([(0, 1), (0, 3), (2, 3)]),
)


@given(plans)
def test_in_order_the_cursor_is_a_position(plan: Plan) -> None:
    cursor, waiting = Cursor(), list(plan.batches(0))
    while waiting:
        assert list(cursor.remaining(plan)) == waiting
        assert not cursor.at_end(plan)
        assert cursor.position == waiting[0].position
        cursor.deliver(waiting.pop(0), plan)
        assert not cursor.taken
    assert cursor.at_end(plan)
    assert list(cursor.remaining(plan)) == []


@given(plans, st.randoms(use_true_random=False), st.integers(1, 10))
def test_out_of_order_what_remains_is_what_was_not_delivered(plan: Plan, random: Random, ahead: int) -> None:
    cursor, waiting = Cursor(3), list(plan.batches(3))
    while waiting:
        assert not cursor.at_end(plan)
        batch = waiting.pop(random.randrange(min(ahead, len(waiting))))
        cursor.deliver(batch, plan)
        assert list(cursor.remaining(plan)) == waiting
        assert len(cursor.taken) < len(plan)
        assert all(start > cursor.position for start in cursor.taken)
    assert cursor.at_end(plan)
    assert cursor.taken == set()


def test_remaining_is_of_the_moment_it_was_asked() -> None:
    plan, cursor = Plan(10, 2), Cursor()
    remaining = cursor.remaining(plan)
    cursor.deliver(plan.batch(0, 0), plan)
    cursor.deliver(plan.batch(0, 6), plan)
    assert [batch.position for batch in remaining] == [0, 2, 4, 6, 8]


def test_the_next_epoch_begins_at_its_start() -> None:
    plan, cursor = Plan(10, 2), Cursor()
    cursor.deliver(plan.batch(0, 0), plan)
    cursor.deliver(plan.batch(0, 4), plan)
    cursor.next_epoch()
    assert cursor == Cursor(epoch=1, position=0, taken=set())


def test_an_epoch_without_batches_is_at_its_end() -> None:
    assert Cursor().at_end(Plan(0, 4))
    assert Cursor().at_end(Plan(3, 4, drop_last=True))


@pytest.mark.parametrize(
    "batch",
    [
        Batch(0, 0, 2, 0),  # delivered, in order
        Batch(0, 6, 8, 6),  # delivered, out of order
        Batch(1, 2, 4, 2),  # another epoch
        Batch(0, 3, 5, 3),  # no round begins there
        Batch(0, 10, 12, 10),  # beyond the end
    ],
)
def test_a_batch_that_is_not_due_is_refused(batch: Batch) -> None:
    plan, cursor = Plan(10, 2), Cursor()
    cursor.deliver(plan.batch(0, 0), plan)
    cursor.deliver(plan.batch(0, 6), plan)
    with pytest.raises(ValueError, match="is not due"):
        cursor.deliver(batch, plan)
    assert cursor == Cursor(0, 2, {6})
