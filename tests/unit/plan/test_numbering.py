"""Items that nobody has counted have the numbers and seeds that a very long plan would give them."""

from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Cursor, Numbering, Plan, from_state, to_state

LONG = 2**62  # what states of streams say their length is


@given(st.integers(), st.integers(0, LONG - 2), st.integers(0, 2**40))
def test_numbers_and_seeds_are_those_of_a_plan_of_single_samples(seed, number, epoch):
    plan, numbering = Plan(LONG, None, seed=seed), Numbering(seed)
    batch = plan.batch(epoch, number)
    assert numbering.batch(epoch, number) == batch
    assert list(numbering.indices(batch)) == list(plan.indices(batch))
    assert numbering.batch_seed(batch) == plan.batch_seed(batch)
    assert numbering.next_position(number) == plan.next_position(number)
    assert numbering.is_over(number) == plan.is_over(number)


@given(st.integers(), st.sets(st.integers(0, 12)), st.integers(0, 5))
def test_states_are_those_that_streams_have_always_had(seed, taken, skipped):
    cursor, numbering = Cursor(skipped=skipped), Numbering(seed)
    for number in sorted(taken):
        cursor.deliver(numbering.batch(0, number), numbering)
    state = to_state(cursor, numbering)
    assert state == to_state(cursor, Plan(LONG, None, seed=seed))
    assert from_state(state, numbering) == cursor
