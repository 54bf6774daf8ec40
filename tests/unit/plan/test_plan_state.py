import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import StateError
from stoker.plan import Cursor, Plan, check_sum, from_state, to_state

plans = st.builds(
    Plan,
    st.integers(0, 60),
    st.one_of(st.none(), st.integers(1, 9)),
    shuffle=st.sampled_from([False, True, 5]),
    seed=st.integers(),
    drop_last=st.booleans(),
    shard=st.sampled_from([(0, 1), (0, 3), (2, 3)]),
)


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    loaded = json.loads(json.dumps(state))
    assert loaded == state
    return loaded  # type: ignore[no-any-return]


def signed(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """An edited state whose check fits: what a mistake of ours would write, not an accident."""
    state = {**state, **changes}
    return {**state, "check": check_sum(state)}


@given(plans, st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_state_saved_at_any_step_goes_on_with_what_was_undelivered(plan: Plan, random: Random, ahead: int) -> None:
    cursor, waiting = Cursor(2), list(plan.batches(2))
    while waiting:
        state = through_json(to_state(cursor, plan))
        again = from_state(state, plan)
        assert again == cursor
        assert list(again.remaining(plan)) == waiting
        assert to_state(again, plan) == state
        cursor.deliver(waiting.pop(random.randrange(min(ahead, len(waiting)))), plan)
    end = from_state(through_json(to_state(cursor, plan)), plan)
    assert end == (Cursor(3) if len(plan) else Cursor(2))
    assert to_state(end, plan) == to_state(cursor, plan)


def test_saving_does_not_move_the_cursor() -> None:
    plan, cursor = Plan(4, 2), Cursor(0, 4)
    assert to_state(cursor, plan)["epoch"] == 1
    assert cursor == Cursor(0, 4)


@given(st.integers(1, 100), st.integers(1, 7), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.data())
def test_a_run_resumes_with_another_number_of_shards(
    length: int, size: int, before: int, after: int, drop_last: bool, data: st.DataObject
) -> None:
    old = Plan(length, size, drop_last=drop_last, shard=(before - 1, before))
    new = Plan(length, size, drop_last=drop_last, shard=(0, after))
    steps = data.draw(st.integers(0, len(old)))
    cursor = Cursor()
    for batch in list(old.batches(0))[:steps]:
        cursor.deliver(batch, old)
    again = from_state(through_json(to_state(cursor, old)), new)
    if not cursor.position:
        assert again == Cursor(0)
    elif old.is_over(cursor.position) or new.is_over(cursor.position):
        assert again == Cursor(1)  # with drop_last, the new count may be too big for what is left
    else:
        assert again == cursor
    # And once more: the position is now one that the new count alone would not have come to.
    assert from_state(through_json(to_state(again, new)), new) == again


def test_out_of_order_is_not_a_step_boundary_for_another_number_of_shards() -> None:
    state = to_state(Cursor(0, 0, {4, 8}), Plan(20, 2, shard=(0, 2)))
    with pytest.raises(StateError, match=r"2 shards, not at a step boundary .2 batches.*cannot go on with 4"):
        from_state(state, Plan(20, 2, shard=(0, 4)))


BASE = Plan(100, 8, shuffle=True, seed=3)
STATE = to_state(Cursor(1, 16, {32}), BASE)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Plan(90, 8, shuffle=True, seed=3), "saved with length=100 and this loader has length=90"),
        (Plan(100, 4, shuffle=True, seed=3), "saved with batch_size=8 and this loader has batch_size=4"),
        (Plan(100, None, shuffle=True, seed=3), "batch_size=8 and this loader has batch_size=None"),
        (Plan(100, 8, shuffle=9, seed=3), "saved with shuffle=True and this loader has shuffle=9"),
        (Plan(100, 8, seed=3), "make the loader with shuffle=True to go on"),
        (Plan(100, 8, shuffle=True, seed=4), "saved with seed=3 and this loader has seed=4"),
        (Plan(100, 8, shuffle=True, seed=3, drop_last=True), "saved with drop_last=False and this loader"),
    ],
)
def test_another_plan_is_refused_by_name_and_value(other: Plan, message: str) -> None:
    with pytest.raises(StateError) as caught:
        from_state(STATE, other)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stoker_state": 1}, "the state has format 1 and this Stoker reads format 2"),
        (
            {"plan": {**STATE["plan"], "version": 2}},
            "saved with plan version 2 and this Stoker has version 1",
        ),
        ({"plan": {**STATE["plan"], "extra": 1}}, "its plan has unknown keys: 'extra'"),
        ({"plan": {"version": 1}}, "its plan lacks batch_size, drop_last"),
        ({"plan": {**STATE["plan"], "shuffle": 1}}, "saved with shuffle=1"),
        ({"plan": []}, "its plan is a list"),
        ({"extra": 1}, "the state has unknown keys: 'extra'"),
        ({"shards": 0}, "its shards are 0"),
        ({"epoch": -1}, "its epoch is -1"),
        ({"epoch": True}, "its epoch is True"),
        ({"skipped": -1}, "its skipped is -1"),
        ({"position": 16.0}, "its position is 16.0"),
        ({"position": 17, "taken": []}, "its position is 17, where no round of 100 samples begins"),
        ({"position": 104, "taken": []}, "its position is 104"),
        ({"taken": [16]}, "it has taken a round at 16"),
        ({"taken": [8]}, "it has taken a round at 8"),
        ({"taken": [33]}, "it has taken a round at 33"),
        ({"taken": [104]}, "it has taken a round at 104"),
        ({"taken": [40, 32]}, "not a rising list"),
        ({"taken": [32, 32]}, "not a rising list"),
        ({"taken": ["32"]}, "its taken is ['32']"),
        ({"taken": 32}, "its taken is 32"),
    ],
)
def test_what_cannot_be_is_refused_although_its_check_fits(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StateError) as caught:
        from_state(signed(STATE, **changes), BASE)
    assert message in str(caught.value)


@pytest.mark.parametrize("state", [None, [], "{}", 3, b"", {}, {1: 2}, {"stoker_state": 2}])
def test_what_is_no_state_is_refused(state: object) -> None:
    with pytest.raises(StateError):
        from_state(state, BASE)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=5,
)
odd_values = st.one_of(json_values, st.binary(), st.just({1, 2}), st.just(object()), st.just({1: 2, "a": 3}))


@given(st.sampled_from(sorted(STATE)), odd_values)
def test_any_altered_key_is_refused(key: str, value: Any) -> None:
    if type(value) is type(STATE[key]) and value == STATE[key]:
        return
    with pytest.raises(StateError):
        from_state({**STATE, key: value}, BASE)


@given(st.sampled_from(sorted(STATE["plan"])), odd_values)
def test_any_altered_key_of_its_plan_is_refused(key: str, value: Any) -> None:
    if type(value) is type(STATE["plan"][key]) and value == STATE["plan"][key]:
        return
    with pytest.raises(StateError):
        from_state({**STATE, "plan": {**STATE["plan"], key: value}}, BASE)


@pytest.mark.parametrize("key", [*STATE, *STATE["plan"]])
def test_any_dropped_key_is_refused(key: str) -> None:
    state = copy.deepcopy(STATE)
    (state if key in state else state["plan"]).pop(key)
    with pytest.raises(StateError, match=f"lacks {key}" if key in STATE else "its check is"):
        from_state(state, BASE)


def test_the_form_is_frozen() -> None:
    """If this fails, saved runs cannot be loaded: raise STATE_VERSION, or undo the change."""
    assert STATE == {
        "stoker_state": 2,
        "plan": {
            "version": 1,
            "length": 100,
            "batch_size": 8,
            "shuffle": True,
            "seed": 3,
            "drop_last": False,
        },
        "shards": 1,
        "epoch": 1,
        "position": 16,
        "taken": [32],
        "skipped": 0,
        "check": 1794807680,
    }
