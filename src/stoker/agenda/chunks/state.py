"""Where a consumer of chunk files is, as a dict that JSON can hold, and back, checked.

    {"stoker_chunks": 2, "plan": {...}, "files": "8f...", "parts": "c2...", "shard": [0, 1], "epoch": 3, "place": 17,
     "taken": [], "partly": [[17, 40]], "waiting": [[15, 0], [15, 1]], "left_out": 0, "check": 2774}

``files`` and ``parts`` are empty at the beginning of an epoch, and ``parts`` is where no file is cut. Format 1 had no
``parts``: it is of a time when each file was read as a whole, and is understood where that has not changed.

The state is that of one shard: each consumer saves its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.agenda.chunks.checks import check_keys, check_within, checked_form, damaged, is_count
from stoker.agenda.chunks.epochs import Epoch
from stoker.collation import Pack
from stoker.errors import StateError
from stoker.plan import PLAN_VERSION, ChunkCursor, Plan, check_sum
from stoker.sources.chunks import Chunks
from stoker.sources.files.opening import shown

_VERSION, _OF_WHOLE_FILES = 2, 1
_PLACE = ("epoch", "place", "taken", "partly", "waiting", "left_out")
_KEYS = frozenset({"stoker_chunks", "plan", "files", "parts", "shard", *_PLACE, "check"})
# In states from before there was a choice, or where there is none.
_UNWRITTEN = {"even_shards": True, "pack_length": None, "pack_keys": None, "pack_long": None}


def to_state(cursor: ChunkCursor, chunks: Chunks, plan: Plan, pack: Pack | None, epoch: Epoch | None) -> dict[str, Any]:
    """``epoch``: where it is within one."""
    state = {
        "stoker_chunks": _VERSION,
        "plan": _fingerprint(chunks, plan, pack),
        "files": epoch.files if epoch is not None else "",
        "parts": epoch.parts.fingerprint() if epoch is not None else "",
        "shard": list(plan.shard),
        **cursor._asdict(),
        "taken": list(cursor.taken),
        "partly": [list(one) for one in cursor.partly],
        "waiting": [list(one) for one in cursor.waiting],
    }
    return {**state, "check": check_sum(state)}


def from_state(
    state: object, chunks: Chunks, plan: Plan, pack: Pack | None, epoch: Callable[[int], Epoch]
) -> ChunkCursor:
    """Raises ``StateError`` if the state is damaged, or of other files or another plan.

    Whoever damages one on purpose can put the check right: so each value is looked at, in the order in which others
    depend on it, and none is trusted because of the check.
    """
    if not isinstance(state, dict) or "stoker_chunks" not in state:
        raise StateError("the state is not one of a loader of chunks: pass the dict that state_dict() gave")
    version = state["stoker_chunks"]
    if is_count(version) and version not in (_VERSION, _OF_WHOLE_FILES):
        raise StateError(f"the state has format {version} and this Stoker reads format {_VERSION} and those before it")
    where = checked_form(state, _KEYS - {"parts"} if version == _OF_WHOLE_FILES else _KEYS)
    if state["check"] != check_sum(state):
        damaged("its check is not that of its contents")
    check_plan(state["plan"], _fingerprint(chunks, plan, pack))
    if where.is_within:
        _check_same(state, list(plan.shard), epoch(where.epoch))
    check_within(where, epoch(where.epoch) if where.is_within else None, chunks, plan, packs=pack is not None)
    return where


def check_plan(found: dict[str, Any], ours: dict[str, Any]) -> None:
    """Whether a state was saved with our plan. Else ``StateError``."""
    found, ours = {**_UNWRITTEN, **found}, {**_UNWRITTEN, **ours}
    check_keys("its plan", found, ours.keys())
    for name, value in ours.items():
        theirs = found[name]
        if type(theirs) is not type(value) or theirs != value:  # with types, because True == 1 in Python
            raise StateError(
                f"the state was saved with {name}={theirs!r} and this loader has {name}={value!r}: make the loader "
                f"with {name}={theirs!r} to go on, or start afresh without the state"
            )


def _check_same(state: dict[str, Any], shard: list[int], epoch: Epoch) -> None:
    if list(state["shard"]) != shard:
        raise StateError(
            f"the state was saved in the middle of an epoch by shard {tuple(state['shard'])} and this is "
            f"{tuple(shard)}: each shard reads its own part of the files, and saves a state of its own; the number of "
            f"shards can only change at the end of an epoch"
        )
    if state["files"] != epoch.files:
        raise StateError(
            "the files are not those that the state was saved with (some have other names or sizes, or were added or "
            "removed), and it was saved in the middle of an epoch, whose order follows from them: restore them, or go "
            "on from the beginning of an epoch with loader.set_epoch()"
        )
    _check_parts(state, epoch)


def _check_parts(state: dict[str, Any], epoch: Epoch) -> None:
    if state.get("parts", "") == epoch.parts.fingerprint():
        return
    if state["stoker_chunks"] == _OF_WHOLE_FILES:
        file = shown(epoch.parts.listing[min(epoch.parts.cuts)])
        raise StateError(
            f"the state was saved in the middle of an epoch by a Stoker that read each file as a whole, and files such "
            f"as {file} are now read in parts, in another order: go on from the beginning of an epoch with "
            f"loader.set_epoch({state['epoch']})"
        )
    raise StateError(
        "the files are cut into other parts than when the state was saved (by another version of Stoker, or since one "
        f"was written anew), and it was saved in the middle of an epoch, whose order follows from them: go on from the "
        f"beginning of an epoch with loader.set_epoch({state['epoch']})"
    )


def _fingerprint(chunks: Chunks, plan: Plan, pack: Pack | None) -> dict[str, Any]:
    return {
        "version": PLAN_VERSION,
        "batch_size": plan.batch_size,
        "shuffle": plan.shuffle,
        "seed": plan.seed,
        "drop_last": plan.drop_last,
        "interleave": chunks.interleave,
        "across_chunks": chunks.across_chunks,
        "even_shards": plan.even_shards,
        **({} if pack is None else pack.identity),
    }
