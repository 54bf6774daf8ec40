"""Whatever is handed over as a state, it is a ``StateError`` or a place that a run can have been at."""

from __future__ import annotations

import copy
import json
from collections import UserDict
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.errors import StateError
from stoker.plan import Cursor, Plan, check_sum, from_state, to_state

PLANS = [
    Plan(100, 8, shuffle=True, seed=3),
    Plan(33, 16, shard=(1, 2), even_shards=False),
    Plan(20, 4, shard=(0, 3), times=3, rotating=5),
    Plan(50, None, seed=-(2**4000), drop_last=True),
    Plan(2**62, None),
    Plan(0, 4),
]


def deep(depth: int, kind: type) -> Any:
    value: Any = kind()
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


numbers = st.one_of(
    st.integers(),
    st.integers(0, 120),
    st.sampled_from([2**31, 2**53, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64]),
    st.sampled_from([5000, 9000]).map(lambda digits: 10**digits),  # more than Python writes as text
)
leaves = st.one_of(st.none(), st.booleans(), numbers, st.floats(), st.text())
nests = st.builds(deep, st.sampled_from([50, 990, 100_000]), st.sampled_from([list, dict]))
values = st.one_of(
    st.recursive(leaves, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)), max_leaves=5),
    st.lists(numbers, max_size=4).map(lambda found: sorted(set(found))),
    nests,
    st.sampled_from([b"", (1, 2), "\ud800", UserDict]),
    st.sampled_from(["set", "unshowable", "mixed", "unshowable key"]).map(
        lambda name: {"set": {1, 2}, "unshowable": Unshowable(), "mixed": {1: 2, "a": 3}}.get(name, {Unshowable(): 1})
    ),
)


def signed(state: dict[str, Any]) -> dict[str, Any]:
    """With a check that fits, where there can be one: what a mistake of ours would write, or somebody's own tool."""
    with suppress(TypeError, ValueError, RecursionError, AttributeError):
        state["check"] = check_sum(state)
    return state


def is_sound(state: Any, plan: Plan) -> None:
    """It is refused, or leads to a place from which the run goes on, and which is saved as it was."""
    try:
        cursor = from_state(state, plan)
    except StateError:
        return
    for batch in islice(cursor.remaining(plan), 3):
        assert batch.epoch == cursor.epoch
        assert len(plan.indices(batch)) == batch.stop - batch.start
    again = to_state(cursor, plan)
    assert json.loads(json.dumps(again)) == again
    assert from_state(again, plan) == cursor


def saved(plan: Plan) -> dict[str, Any]:
    cursor = Cursor(1)
    for batch in islice(plan.batches(1), 2):
        cursor.deliver(batch, plan)
    return copy.deepcopy(to_state(cursor, plan))


@settings(max_examples=400)
@given(st.sampled_from(PLANS), st.data())
def test_values_of_any_kind_size_and_depth_whether_the_check_fits_or_not(plan: Plan, data: st.DataObject) -> None:
    state = saved(plan)
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from([state, state["plan"]] if isinstance(state["plan"], dict) else [state]))
        own = [key for key in part if type(key) is str]  # what was put there before may have keys of any kind, or none
        key = data.draw(st.sampled_from([*own, "new", 1, None, ()]))
        if data.draw(st.booleans()):
            part[key] = data.draw(values)
        else:
            part.pop(key, None)
        if "plan" not in state:
            state["plan"] = None
    is_sound(signed(state) if data.draw(st.booleans()) else state, plan)


@settings(max_examples=200)
@given(st.sampled_from(PLANS), st.fixed_dictionaries({}, optional=dict.fromkeys(
    ["shards", "epoch", "position", "skipped"], numbers) | {"taken": st.lists(numbers, max_size=3)}))  # fmt: skip
def test_numbers_that_were_edited_and_signed(plan: Plan, changes: dict[str, Any]) -> None:
    is_sound(signed(saved(plan) | changes), plan)


@given(values)
def test_no_state_at_all(value: Any) -> None:
    is_sound(value, PLANS[0])


@pytest.mark.parametrize("epoch", [2**62, 2**63 - 1, 2**63, 10**5000], ids=int.bit_length)
def test_an_epoch_that_no_run_can_come_to(epoch: int) -> None:
    with pytest.raises(StateError, match="the state is damaged: its epoch is"):
        from_state({**saved(PLANS[0]), "epoch": epoch}, PLANS[0])


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize("key", ["plan", "taken", "epoch", "check", "other"])
def test_deep_nesting(kind: type, key: str) -> None:
    with pytest.raises(StateError):
        from_state({**saved(PLANS[0]), key: deep(100_000, kind)}, PLANS[0])
    state = saved(PLANS[0])
    state["plan"]["seed"] = deep(100_000, kind)
    with pytest.raises(StateError):
        from_state(state, PLANS[0])
