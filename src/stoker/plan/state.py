"""The cursor as a checkpoint: a dict that JSON can hold, and back, checked.

    {"stoker_state": 2, "plan": {...}, "shards": 2, "epoch": 3, "position": 640, "taken": [],
     "skipped": 0, "check": 2774}

The `plan` part is what must be the same when the run goes on; the number of shards may differ.
"""

import json
from dataclasses import replace
from typing import Any, NoReturn
from zlib import crc32

from stoker.errors import StateError
from stoker.plan.cursor import Cursor
from stoker.plan.plan import PLAN_VERSION, Plan

STATE_VERSION = 2

_NO_ROTATION = {"rotation": None}  # not written down where samples do not rotate
_KEYS = frozenset({"stoker_state", "plan", "shards", "epoch", "position", "taken", "skipped", "check"})


def to_state(cursor: Cursor, plan: Plan) -> dict[str, Any]:
    """The whole checkpoint, as a dict that JSON can hold."""
    settled = _settled(cursor, plan)
    state = {
        "stoker_state": STATE_VERSION,
        "plan": _fingerprint(plan),
        "shards": plan.shard[1],
        "epoch": settled.epoch,
        "position": settled.position,
        "taken": sorted(settled.taken),
        "skipped": settled.skipped,
    }
    return {**state, "check": _check(state)}


def from_state(state: object, plan: Plan) -> Cursor:
    """The cursor that `to_state` wrote, for a plan that goes on with it.

    Raises:
        StateError: The state is damaged, of another version, or of another plan.
    """
    checked = _checked_form(state)
    _check_plan(checked["plan"], plan)
    cursor = Cursor(checked["epoch"], checked["position"], set(checked["taken"]), checked["skipped"])
    # The state's own number of shards tells which positions it can have been at.
    _check_cursor(cursor, replace(plan, shard=(0, checked["shards"])))
    theirs, ours = checked["shards"], plan.shard[1]
    if cursor.taken and theirs != ours:
        raise StateError(
            f"the state was saved with {theirs} shards, not at a step boundary ({len(cursor.taken)} batches "
            f"were taken out of order), so it cannot go on with {ours}: resume with {theirs} shards, or save "
            f"with in_order=True"
        )
    if cursor.position and plan.times > 1 and theirs != ours:
        raise StateError(
            f"the state was saved with {theirs} shards in the middle of an epoch in which samples rotate, and each "
            f"shard rotates its own: resume with {theirs} shards, or with {ours} from the end of an epoch on"
        )
    return _settled(cursor, plan)


def _settled(cursor: Cursor, plan: Plan) -> Cursor:
    # The end of an epoch is the start of the next. An epoch without any batch stays: the next is no better.
    if cursor.position > 0 and cursor.at_end(plan):
        return Cursor(cursor.epoch + 1)
    return cursor


def _fingerprint(plan: Plan) -> dict[str, int | bool | str | None]:
    return {
        "version": PLAN_VERSION,
        "length": plan.length,
        "batch_size": plan.batch_size,
        "shuffle": plan.shuffle,
        "seed": plan.seed,
        "drop_last": plan.drop_last,
        **({"rotation": f"Rotation({plan.times}, size={plan.rotating})"} if plan.times > 1 else {}),
    }


def _check(state: dict[str, Any]) -> int:
    rest = {key: value for key, value in state.items() if key != "check"}
    return crc32(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


def _checked_form(state: object) -> dict[str, Any]:
    """The state, with the right keys, plausible types and a matching check."""
    if not isinstance(state, dict):
        raise StateError(f"the state is a {type(state).__name__}: pass the dict that state_dict() gave")
    version = state.get("stoker_state")
    if _is_count(version) and version != STATE_VERSION:
        raise StateError(
            f"the state has format {version} and this Stoker reads format {STATE_VERSION}: "
            f"load it with the version of Stoker that wrote it"
        )
    _check_keys("the state", state, _KEYS)
    for key in ("stoker_state", "shards", "epoch", "position", "skipped", "check"):
        if not _is_count(state[key]):
            _damaged(f"its {key} is {state[key]!r}, not a count")
    if not isinstance(state["plan"], dict):
        _damaged(f"its plan is a {type(state['plan']).__name__}, not a dict")
    if state["shards"] == 0:
        _damaged("its shards are 0")
    taken = state["taken"]
    if not isinstance(taken, list) or not all(map(_is_count, taken)) or taken != sorted(set(taken)):
        _damaged(f"its taken is {taken!r}, not a rising list of positions")
    _check_sum(state)
    return state


def _check_sum(state: dict[str, Any]) -> None:
    try:
        found = _check(state)
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"the state holds what JSON cannot ({error}): load the one that was saved") from error
    if found != state["check"]:
        _damaged(f"its check is {state['check']} but its contents give {found}")


def _check_keys(name: str, found: dict[Any, Any], expected: frozenset[str]) -> None:
    missing, unknown = expected - found.keys(), found.keys() - expected
    if missing:
        _damaged(f"{name} lacks {', '.join(sorted(missing))}")
    if unknown:
        _damaged(f"{name} has unknown keys: {', '.join(sorted(map(repr, unknown)))}")


def _check_plan(found: dict[str, Any], plan: Plan) -> None:
    ours, found = {**_NO_ROTATION, **_fingerprint(plan)}, {**_NO_ROTATION, **found}
    _check_keys("its plan", found, frozenset(ours))
    for name, value in ours.items():
        # With types, because True == 1 in Python.
        if type(found[name]) is type(value) and found[name] == value:
            continue
        if name == "version":
            raise StateError(
                f"the state was saved with plan version {found[name]!r} and this Stoker has version {value}, "
                f"whose order is another: resume with the version of Stoker that wrote it, or start afresh"
            )
        raise StateError(
            f"the state was saved with {name}={found[name]!r} and this loader has {name}={value!r}: "
            f"make the loader with {name}={found[name]!r} to go on, or start afresh without the state"
        )


def _check_cursor(cursor: Cursor, plan: Plan) -> None:
    """Refuse a cursor that no run of `plan` can have been at."""
    # Every run so far took whole rounds, with whatever number of shards: multiples of the batch size.
    step = plan.stride if plan.times > 1 else plan.batch_size or 1
    if cursor.position % step or (cursor.position > 0 and cursor.at_end(plan)):
        _damaged(f"its position is {cursor.position}, where no round of {plan.positions} samples begins")
    for start in sorted(cursor.taken):
        if start <= cursor.position or (start - cursor.position) % plan.stride or plan.is_over(start):
            _damaged(f"it has taken a round at {start}, where none begins from position {cursor.position}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _damaged(what: str) -> NoReturn:
    raise StateError(f"the state is damaged: {what}. Load one as it was saved, not edited or cut short")
