"""Where a consumer of packed rows is, as a dict that JSON can hold, and back, checked.

    {"stoker_packed": 1, "plan": {...}, "shard": [0, 1], "epoch": 3, "place": 17, "taken": [], "partly": [[17, 4]],
     "waiting": [[16, 0], [16, 1]], "left_out": 0, "check": 2774}

The state of a mixture has one more part, ``mixture``, as that of a loader that does not pack.

``place``, ``taken``, ``partly`` and ``waiting`` are those of a ``ChunkCursor``, with windows for groups of files, and
rows for samples. The state is that of one shard: each consumer saves its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from stoker.agenda.chunks.checks import check_cursor, checked_form, damaged, is_count
from stoker.agenda.chunks.state import check_plan
from stoker.agenda.packed.windows import Windows
from stoker.errors import StateError
from stoker.plan import ChunkCursor, Mixture, Plan, check_sum, identity, order_of_state

_KIND, _VERSION = "stoker_packed", 1
_PLACE = ("epoch", "place", "taken", "partly", "waiting", "left_out")
_KEYS = frozenset({_KIND, "plan", "shard", *_PLACE, "check"})


def to_state(cursor: ChunkCursor, windows: Windows) -> dict[str, Any]:
    """The whole checkpoint."""
    order = windows.plan.order
    state = {
        _KIND: _VERSION,
        "plan": _identity(windows, cursor),
        "shard": list(windows.plan.shard),
        **cursor._asdict(),
        "taken": list(cursor.taken),
        "partly": [list(one) for one in cursor.partly],
        "waiting": [list(one) for one in cursor.waiting],
        **({"mixture": order.to_state()} if isinstance(order, Mixture) else {}),
    }
    return {**state, "check": check_sum(state)}


def from_state(state: object, windows: Windows) -> tuple[ChunkCursor, Plan]:
    """The cursor, and the plan of batches that goes on from there: a mixture is the one that was saved.

    Raises ``StateError`` if the state is damaged, or of another plan, packing or shard.
    """
    if not isinstance(state, dict) or _KIND not in state:
        raise StateError("the state is not one of a loader with pack=...: pass the dict that state_dict() gave")
    version = state[_KIND]
    if is_count(version) and version != _VERSION:
        raise StateError(f"the state has format {version} and this Stoker reads format {_VERSION}")
    where = checked_form(state, _KEYS | ({"mixture"} & state.keys()), _KIND)
    if state["check"] != check_sum(state):
        damaged("its check is not that of its contents")
    order = order_of_state(state, windows.batches.order, None if where.is_within else where.epoch)
    windows = Windows(dataclasses.replace(windows.batches, order=order), windows.pack)
    check_plan(state["plan"], _identity(windows, where))
    if where.is_within:
        _check_within(where, tuple(state["shard"]), windows)
    elif where.left_out:
        damaged(f"it has left out {where.left_out} samples before the first")
    return where, windows.batches


def _check_within(where: ChunkCursor, shard: tuple[Any, ...], windows: Windows) -> None:
    _check_shard(shard, windows.plan.shard)
    share = windows.plan.share_in(where.epoch)
    if where.left_out > share:
        damaged(f"it has left out {where.left_out} of {share} samples")
    check_cursor(where, windows.count(where.epoch), windows.batches)


def _check_shard(theirs: tuple[Any, ...], ours: tuple[int, int]) -> None:
    if theirs != ours:
        raise StateError(
            f"the state was saved in the middle of an epoch by shard {theirs} and this is {ours}: each shard packs its "
            f"own samples, and saves a state of its own; the number of shards can only change at the end of an epoch"
        )


def _identity(windows: Windows, where: ChunkCursor) -> dict[str, Any]:
    """What must be the same when a run goes on from there."""
    batches, epoch = windows.batches, where.epoch if where.is_within else None
    rows = {"batch_size": batches.batch_size, "drop_last": batches.drop_last, "even_shards": batches.even_shards}
    return {**identity(windows.plan, epoch), **rows, **windows.pack.identity, "pack_window": windows.pack.window}
