"""Where a consumer of chunk files is, as a dict that JSON can hold, and back, checked.

    {"stoker_chunks": 1, "plan": {...}, "files": "8f...", "shard": [0, 1], "epoch": 3, "place": 17, "taken": [],
     "partly": [[17, 40]], "waiting": [[15, 0], [15, 1]], "left_out": 0, "check": 2774}

The state is that of one shard: each consumer saves its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

from stoker.errors import StateError
from stoker.plan import PLAN_VERSION, Plan
from stoker.sources.chunks import Chunks

_VERSION = 1


@dataclass(frozen=True)
class Where:
    """Groups before ``place`` are done with, and those ``taken`` after it; of some, so many batches were handed out
    (``partly``), and of some, loose samples are waiting: their places, and which of the loose ones there."""

    epoch: int
    place: int = 0
    taken: list[int] = field(default_factory=list)
    partly: list[tuple[int, int]] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    left_out: int = 0

    @property
    def is_within(self) -> bool:
        """Whether something of the epoch was taken, so that it must go on with the same files and shards."""
        return bool(self.place or self.taken or self.partly or self.waiting)


def to_state(where: Where, chunks: Chunks, plan: Plan, files: str) -> dict[str, Any]:
    """``files``: the fingerprint of the epoch's listing, where it is within one."""
    state = {
        "stoker_chunks": _VERSION,
        "plan": _fingerprint(chunks, plan),
        "files": files,
        "shard": list(plan.shard),
        **asdict(where),
        "partly": [list(one) for one in where.partly],
        "waiting": [list(one) for one in where.waiting],
    }
    return {**state, "check": _check(state)}


def from_state(state: object, chunks: Chunks, plan: Plan, files: Callable[[Where], str]) -> Where:
    """Raises ``StateError`` if the state is damaged, or of other files or another plan."""
    if not isinstance(state, dict) or "stoker_chunks" not in state:
        raise StateError("the state is not one of a loader of chunks: pass the dict that state_dict() gave")
    if state["stoker_chunks"] != _VERSION:
        raise StateError(f"the state has format {state['stoker_chunks']!r} and this Stoker reads format {_VERSION}")
    if state.get("check") != _check(state):
        raise StateError("the state is damaged: load one as it was saved, not edited or cut short")
    for name, ours in _fingerprint(chunks, plan).items():
        theirs = state["plan"].get(name)
        if theirs != ours:
            raise StateError(
                f"the state was saved with {name}={theirs!r} and this loader has {name}={ours!r}: make the loader with "
                f"{name}={theirs!r} to go on, or start afresh without the state"
            )
    partly, waiting = ([(place, number) for place, number in state[name]] for name in ("partly", "waiting"))
    where = Where(state["epoch"], state["place"], state["taken"], partly, waiting, state["left_out"])
    if where.is_within:
        _check_same(state, list(plan.shard), files(where))
    return where


def _check_same(state: dict[str, Any], shard: list[int], files: str) -> None:
    if state["shard"] != shard:
        raise StateError(
            f"the state was saved in the middle of an epoch by shard {tuple(state['shard'])} and this is "
            f"{tuple(shard)}: each shard reads its own part of the files, and saves a state of its own; the number of "
            f"shards can only change at the end of an epoch"
        )
    if state["files"] != files:
        raise StateError(
            "the files are not those that the state was saved with (some have other names or sizes, or were added or "
            "removed), and it was saved in the middle of an epoch, whose order follows from them: restore them, or go "
            "on from the beginning of an epoch with loader.set_epoch()"
        )


def _fingerprint(chunks: Chunks, plan: Plan) -> dict[str, Any]:
    return {
        "version": PLAN_VERSION,
        "batch_size": plan.batch_size,
        "shuffle": plan.shuffle,
        "seed": plan.seed,
        "drop_last": plan.drop_last,
        "interleave": chunks.interleave,
        "across_chunks": chunks.across_chunks,
    }


def _check(state: dict[str, Any]) -> int:
    rest = {key: value for key, value in state.items() if key != "check"}
    return crc32(json.dumps(rest, sort_keys=True, separators=(",", ":"), default=str).encode())
