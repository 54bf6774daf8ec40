"""Whether each sample comes once, over all shards: counted where there are few, by arithmetic where there are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stoker.plan import Batch, Plan

_PIECE = 2**14  # positions whose indices are worked out at a time: more would not fit into caches


@dataclass(frozen=True)
class Coverage:
    """What was checked. ``how``: by which means. ``batches``: how many of them."""

    samples: int
    shards: int
    how: str
    batches: int
    is_exact: bool


def shards_of(plan: Plan) -> list[Plan]:
    """The same plan for each of its shards."""
    return [replace(plan, shard=(number, plan.shard[1])) for number in range(plan.shard[1])]


def counted(plan: Plan, epoch: int = 0) -> Coverage:
    """All batches of all shards are made up, and each index is counted."""
    counts, batches = np.zeros(plan.length, np.int64), 0
    for shard in shards_of(plan):
        for batch in shard.batches(epoch):
            np.add.at(counts, shard.indices(batch), 1)
            batches += 1
    return Coverage(plan.length, plan.shard[1], "every index counted", batches, bool((counts == 1).all()))


def tiled(plan: Plan, positions: Iterable[int], epoch: int = 0) -> Coverage:
    """In the rounds that begin there, the batches of all shards follow each other without a gap or an overlap."""
    shards, batches, is_exact = shards_of(plan), 0, True
    for position in positions:
        at = position
        for shard in shards:
            if not shard.has_none_at(position):
                batch = shard.batch(epoch, position)
                is_exact &= batch.start == at
                at = batch.stop
                batches += 1
        is_exact &= at == plan.next_position(position)
    return Coverage(plan.length, len(shards), "rounds without gap or overlap", batches, is_exact)


def first_middle_last(plan: Plan) -> list[int]:
    """Where some rounds of an epoch begin, the first and the last two among them."""
    last = plan.rounds - 1
    return [number * plan.stride for number in sorted({0, 1, last // 3, last // 2, max(last - 1, 0), last})]


def one_to_one(plan: Plan, *, windows: int, size: int, epoch: int = 0) -> Coverage:
    """The indices of some stretches of the order, far from each other, are all different, and are samples.

    A function that were not one to one would be found out if there are more than about the square root of the samples.
    """
    size = min(size, plan.length // windows)
    starts = [number * (plan.length - size) // max(windows - 1, 1) for number in range(windows)]
    pieces = [
        range(at, min(at + _PIECE, start + size)) for start in starts for at in range(start, start + size, _PIECE)
    ]
    found = np.concatenate([np.array(plan.indices(Batch(epoch, one.start, one.stop, 0))) for one in pieces])
    is_exact = bool(found.min() >= 0 and found.max() < plan.length and len(np.unique(found)) == windows * size)
    return Coverage(plan.length, plan.shard[1], f"{windows * size:,} indices all different", 0, is_exact)


def delivered(plans: Sequence[Plan], starts: Sequence[Sequence[int]]) -> bool:
    """Each consumer has got the batches of its shard, in order, from the first on, and none twice."""
    return all(_is_in_order(plan, got) for plan, got in zip(plans, starts, strict=True))


def _is_in_order(plan: Plan, starts: Sequence[int]) -> bool:
    per_epoch = len(plan)
    expected = (batch.start for epoch in range(len(starts) // per_epoch + 1) for batch in plan.batches(epoch))
    return all(got == due for got, due in zip(starts, expected, strict=False))
