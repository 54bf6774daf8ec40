"""Very many consumers: that each sample comes once over all of them, whatever is lost."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks.simulation.assumptions import varied
from benchmarks.simulation.coverage import (
    Coverage,
    counted,
    delivered,
    first_middle_last,
    one_to_one,
    shards_of,
    tiled,
)
from benchmarks.simulation.scenario import Failure, Outcome, Scenario, simulate
from stoker import Ray
from stoker.plan import Plan

_SAMPLES, _CONSUMERS, _NODES, _CORES = 10**12, 10_000, 1_000, 64
_WORKERS = 6  # of each consumer
_BATCH, _SAMPLE_BYTES, _SAMPLE_S = 32, 150_000, 5e-3
_STEP_S = 0.05
_BATCHES = 40
_SPREAD, _STRAGGLERS, _FACTOR = 0.3, 0.01, 5.0  # of the time that a sample takes
_COUNTED = 10**6  # samples: of fewer, each is counted
_PART = 50  # a quick run simulates one in so many consumers, and as many of the nodes
_WINDOWS, _WINDOW = 4, 2**19  # 2 million positions, more than the square root of 10^12


@dataclass(frozen=True)
class Fleet:
    """Consumers that were simulated in full, and what they got."""

    consumers: int
    of: int
    nodes: int
    lost_nodes: int
    deaths: int
    batches: int
    is_exact: bool
    batches_per_s: float  # of one consumer, in the mean
    real_s: float


def coverage() -> Iterator[Coverage]:
    """Few samples are counted; of many, all shards are looked at by arithmetic."""
    for samples, shards in ((1_000, 3), (100_003, 64), (1_000_000, 1_000)):
        yield counted(Plan(samples, _BATCH, shuffle=True, shard=(0, shards), even_shards=False))
    plan = Plan(_SAMPLES + 12_345, _BATCH, shuffle=True, shard=(0, _CONSUMERS))
    yield tiled(plan, first_middle_last(plan))
    yield one_to_one(plan, windows=_WINDOWS, size=_WINDOW)


def small() -> Fleet:
    """All consumers of a small dataset, for two epochs, while half of the nodes are lost one after the other: every
    index is counted."""
    plan = Plan(4_800, 8, shuffle=True, seed=7, shard=(0, 5))
    failures = [Failure(number, 4.0 + 10.0 * number, back_after=6.0) for number in range(4)]
    return _fleet(plan, plan.shard[1], nodes=8, cores=5, batches=2 * len(plan), failures=failures, step_s=0.2)


def large(*, full: bool) -> Fleet:
    """One in fifty of 10,000 consumers, on one in fifty of 1,000 nodes, or, if ``full``, all. Nodes are lost."""
    part = 1 if full else _PART
    plan = Plan(_SAMPLES, _BATCH, shuffle=True, shard=(0, _CONSUMERS))
    nodes = _NODES // part
    failures = [Failure(number, 3.5 + number / nodes / 2) for number in range(0, nodes, 20)]
    return _fleet(plan, _CONSUMERS // part, nodes=nodes, cores=_CORES, batches=_BATCHES, failures=failures)


def _fleet(
    plan: Plan,
    consumers: int,
    *,
    nodes: int,
    cores: int,
    batches: int,
    failures: list[Failure],
    step_s: float = _STEP_S,
) -> Fleet:
    shards = shards_of(plan)
    chosen = shards[:: len(shards) // consumers]  # from all over them
    began = perf_counter()
    gc.disable()  # it would go through millions of objects again and again, of which hardly any are in cycles
    try:
        outcome = _simulated(chosen, nodes, cores, batches, failures, step_s)
    finally:
        gc.enable()
    real_s = perf_counter() - began
    rate = sum((batches - 1) / (consumer.times[-1] - consumer.times[0]) for consumer in outcome.consumers)
    return Fleet(
        consumers,
        len(shards),
        nodes,
        len(failures),
        outcome.deaths(),
        consumers * batches,
        _is_exact(plan, chosen, outcome),
        rate / consumers,
        real_s,
    )


def _simulated(
    chosen: list[Plan], nodes: int, cores: int, batches: int, failures: list[Failure], step_s: float
) -> Outcome:
    return simulate(
        Scenario(
            chosen,
            varied(_SAMPLE_S, spread=_SPREAD, stragglers=_STRAGGLERS, factor=_FACTOR),
            batches=batches,
            workers=Ray(_WORKERS),
            nodes=nodes,
            cores=cores,
            sample_bytes=_SAMPLE_BYTES,
            step_s=step_s,
            failures=failures,
        )
    )


def _is_exact(plan: Plan, chosen: list[Plan], outcome: Outcome) -> bool:
    """Each has got its own batches, in order; and if all shards are there, they have all samples between them."""
    starts = [consumer.starts for consumer in outcome.consumers]
    is_exact = delivered(chosen, starts)
    if len(chosen) < plan.shard[1]:
        return is_exact
    return is_exact and (_counts_once(chosen, starts) if plan.length < _COUNTED else _fills_rounds(plan, starts))


def _counts_once(plans: list[Plan], starts: Sequence[Sequence[int]]) -> bool:
    """Every index was in as many batches as there were epochs, which were taken to their ends."""
    counts, per_epoch = np.zeros(plans[0].length, np.int64), len(plans[0])
    for plan, got in zip(plans, starts, strict=True):
        batches = {(batch.epoch, batch.start): batch for epoch in (0, 1) for batch in plan.batches(epoch)}
        for nth, start in enumerate(got):
            np.add.at(counts, plan.indices(batches[nth // per_epoch, start]), 1)
    return bool((counts == len(starts[0]) // per_epoch).all())


def _fills_rounds(plan: Plan, starts: Sequence[Sequence[int]]) -> bool:
    """The batches of all shards lie side by side, from the first position on."""
    found = np.sort(np.concatenate(starts))
    return np.array_equal(found, np.arange(0, len(found) * _BATCH, _BATCH))
