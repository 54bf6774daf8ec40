"""The cursor as a checkpoint: a dict that JSON can hold, and back, checked.

    {"stoker_state": 2, "plan": {...}, "shards": 2, "epoch": 3, "position": 640, "taken": [],
     "skipped": 0, "check": 2774}

The `plan` part is what must be the same when the run goes on; the number of shards may differ. The state of a mixture
has one more part, `mixture`: its weights, also those that were set on the way.
"""

import json
import reprlib
from dataclasses import replace
from typing import Any, NoReturn
from zlib import crc32

from stoker.errors import StateError
from stoker.plan.cursor import Cursor
from stoker.plan.mixture import Mixture
from stoker.plan.numbering import Numbering
from stoker.plan.ordering import Ordering
from stoker.plan.plan import PLAN_VERSION, Plan

STATE_VERSION = 2

_UNWRITTEN = {"rotation": None, "even_shards": True, "order": None}  # left out of a state: older ones do not have it
_COUNTS = 2**63  # no number in a state but the seed is as large
_EPOCHS = 2**62  # so that those prefetched after it, too, travel to workers as 64 bits
_KEYS = frozenset({"stoker_state", "plan", "shards", "epoch", "position", "taken", "skipped", "check"})


def to_state(cursor: Cursor, plan: Plan | Numbering) -> dict[str, Any]:
    """The whole checkpoint, as a dict that JSON can hold."""
    settled = _settled(cursor, plan)
    state = {
        "stoker_state": STATE_VERSION,
        "plan": _fingerprint(plan, _within(settled)),
        "shards": plan.shard[1],
        "epoch": settled.epoch,
        "position": settled.position,
        "taken": sorted(settled.taken),
        "skipped": settled.skipped,
    }
    if isinstance(plan.order, Mixture):
        state["mixture"] = plan.order.to_state()
    return {**state, "check": check_sum(state)}


def plan_of_state(state: object, plan: Plan | Numbering) -> Plan | Numbering:
    """The plan that the state was saved with, where it is another: of a mixture, weights may have been set since.

    Raises:
        StateError: The state is damaged, or of another mixture.
    """
    checked = _checked_form(state)
    begins = not checked["position"] and not checked["taken"]
    order = order_of_state(checked, plan.order, checked["epoch"] if begins else None)
    return plan if isinstance(plan, Numbering) or order is plan.order else replace(plan, order=order)


def order_of_state(state: dict[str, Any], order: Ordering | None, epoch: int | None) -> Ordering | None:
    """The order that a state of this kind, or another, was saved with: a mixture as it was then, or ``order``.

    Args:
        state: Its part ``mixture`` is that of `Mixture.to_state`.
        order: The order of the plan that shall go on with it.
        epoch: The epoch that begins where the state was saved; None: it was saved in the middle of one.

    Raises:
        StateError: It is damaged, or of another mixture.
    """
    if not isinstance(order, Mixture):
        return order if "mixture" not in state else _damaged("it is of a Mix, and this dataset is none")
    if "mixture" not in state:
        raise StateError("the state was saved with a dataset that is no Mix: load it with that one, or start afresh")
    return order.resumed(state["mixture"], epoch)


def from_state(state: object, plan: Plan | Numbering) -> Cursor:
    """The cursor that `to_state` wrote, for a plan that goes on with it.

    Raises:
        StateError: The state is damaged, of another version, or of another plan.
    """
    checked = _checked_form(state)
    cursor = Cursor(checked["epoch"], checked["position"], set(checked["taken"]), checked["skipped"])
    _check_plan(checked["plan"], _fingerprint(plan, _within(cursor)))
    # The state's own number of shards tells which positions it can have been at.
    _check_cursor(cursor, _with_shards(plan, checked["shards"]))
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


def identity(plan: Plan, epoch: int | None) -> dict[str, Any]:
    """All that must be the same when a run goes on, by name, for those who have a state of their own.

    ``epoch``: The one that the consumer has taken something of; None if it is where one begins.
    """
    return {**_UNWRITTEN, **_fingerprint(plan, epoch)}


def _with_shards(plan: Plan | Numbering, shards: int) -> Plan | Numbering:
    if isinstance(plan, Numbering):
        return plan if shards == 1 else _damaged(f"its shards are {shards}, and a stream has one")
    try:
        return replace(plan, shard=(0, shards))
    except ValueError as error:
        raise StateError(f"the state is damaged: its shards are {shards}, and {error}") from error


def _settled(cursor: Cursor, plan: Plan | Numbering) -> Cursor:
    # The end of an epoch is the start of the next. An epoch without any batch stays: the next is no better.
    # It has ended when it has for all shards, though this one may have had its last batch before: all save the same.
    if cursor.position > 0 and plan.is_over(cursor.position, cursor.epoch):
        return Cursor(cursor.epoch + 1)
    return cursor


def _within(cursor: Cursor) -> int | None:
    """The epoch that the consumer has taken something of; None if it is where one begins."""
    return cursor.epoch if cursor.position or cursor.taken else None


def _fingerprint(plan: Plan | Numbering, epoch: int | None) -> dict[str, int | bool | str | None]:
    if isinstance(plan, Numbering):  # in the words of a plan, as in all states of streams so far
        plan = Plan(plan.positions, None, seed=plan.seed)
    return {
        "version": PLAN_VERSION,
        "length": 0 if isinstance(plan.order, Mixture) else plan.length,  # the sources' own are in the mixture
        "batch_size": plan.batch_size,
        "shuffle": plan.shuffle,
        "seed": plan.seed,
        "drop_last": plan.drop_last,
        **({"rotation": f"Rotation({plan.times}, size={plan.rotating})"} if plan.times > 1 else {}),
        **({} if plan.even_shards else {"even_shards": False}),
        **({} if plan.order is None else {"order": plan.order.fingerprint(epoch)}),
    }


def check_sum(state: dict[str, Any]) -> int:
    """Of all of it but the check itself."""
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
    _check_keys("the state", state, _KEYS | ({"mixture"} & state.keys()))
    for key in ("stoker_state", "shards", "epoch", "position", "skipped", "check"):
        if not _is_count(state[key]):
            _damaged(f"its {key} is {_shown(state[key])}, not a count")
    if not isinstance(state["plan"], dict):
        _damaged(f"its plan is a {type(state['plan']).__name__}, not a dict")
    if state["shards"] == 0:
        _damaged("its shards are 0")
    if state["epoch"] >= _EPOCHS:
        _damaged(f"its epoch is {state['epoch']}, which no run can come to")
    taken = state["taken"]
    if not isinstance(taken, list) or not all(map(_is_count, taken)) or taken != sorted(set(taken)):
        _damaged(f"its taken is {_shown(taken)}, not a rising list of positions")
    _verify(state)
    return state


def _verify(state: dict[str, Any]) -> None:
    try:
        found = check_sum(state)
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"the state holds what JSON cannot ({error}): load the one that was saved") from error
    if found != state["check"]:
        _damaged(f"its check is {_shown(state['check'])} but its contents give {found}")


def _check_keys(name: str, found: dict[Any, Any], expected: frozenset[str]) -> None:
    missing, unknown = expected - found.keys(), found.keys() - expected
    if missing:
        _damaged(f"{name} lacks {', '.join(sorted(missing))}")
    if unknown:
        _damaged(f"{name} has unknown keys: {', '.join(sorted(map(_shown, unknown)))}")


def _check_plan(found: dict[str, Any], ours: dict[str, int | bool | str | None]) -> None:
    ours, found = {**_UNWRITTEN, **ours}, {**_UNWRITTEN, **found}
    _check_keys("its plan", found, frozenset(ours))
    for name, value in ours.items():
        theirs = found[name]
        # With types, because True == 1 in Python.
        if type(theirs) is type(value) and theirs == value:
            continue
        if name == "version":
            raise StateError(
                f"the state was saved with plan version {_shown(theirs)} and this Stoker has version {value}, "
                f"whose order is another: resume with the version of Stoker that wrote it, or start afresh"
            )
        if name == "order" and theirs is not None and value is not None:
            raise StateError(
                f"the state was saved with order={_shown(theirs)} and this loader has order={value!r}: pass the order "
                f"that it was saved with. A function or a sampler must give the same indices for an epoch when it is "
                f"asked again. Or start afresh without the state"
            )
        raise StateError(
            f"the state was saved with {name}={_shown(theirs)} and this loader has {name}={value!r}: "
            f"make the loader with {name}={_shown(theirs)} to go on, or start afresh without the state"
        )


def _check_cursor(cursor: Cursor, plan: Plan | Numbering) -> None:
    """Refuse a cursor that no run of `plan` can have been at."""
    # Every run so far took whole rounds, with whatever number of shards: multiples of the batch size.
    step = plan.stride if plan.times > 1 else plan.batch_size or 1
    if cursor.position % step or (cursor.position > 0 and plan.is_over(cursor.position, cursor.epoch)):
        _damaged(f"its position is {cursor.position}, where no round of {plan.positions} samples begins")
    for start in sorted(cursor.taken):
        if start <= cursor.position or (start - cursor.position) % plan.stride or plan.is_over(start, cursor.epoch):
            _damaged(f"it has taken a round at {start}, where none begins from position {cursor.position}")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _COUNTS


class _Shown(reprlib.Repr):
    """Short, of whatever depth and size the value is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 80  # characters

    def repr_int(self, x: int, level: int) -> str:
        return f"an int of {x.bit_length()} bits" if abs(x) >= 10**self.maxlong else repr(x)


_shown = _Shown().repr


def _damaged(what: str) -> NoReturn:
    raise StateError(f"the state is damaged: {what}. Load one as it was saved, not edited or cut short")
