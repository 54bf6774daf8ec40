"""What a batch costs the consumer, in real time of Stoker's own code and in memory, as samples and workers grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import stoker
from benchmarks.simulation.assumptions import steady
from benchmarks.simulation.scenario import Scenario, simulate
from stoker import Ray
from stoker.plan import Plan

BATCH = 32
_SAMPLE_S = 5e-3
_CORES = 64  # of a node
_FEW = 16  # workers, while samples grow
_MANY = 10**12  # samples, while workers grow
_MEASURED = 2000  # batches, at least
_SAMPLES = (10**3, 10**6, 10**9, 10**12)
_WORKERS = (4, 16, 64, 256, 1024, 4096)


@dataclass(frozen=True)
class Cost:
    """For each batch: real microseconds of Stoker's code. Memory that this code holds: bytes, without slots."""

    samples: int
    workers: int
    engine_us: float
    memory: int


def measure() -> Iterator[Cost]:
    """As samples grow, then as workers do."""
    for samples in _SAMPLES:
        yield _cost(samples, _FEW)
    for workers in _WORKERS:
        yield _cost(_MANY, workers)


def _cost(samples: int, workers: int) -> Cost:
    skip = 2 * workers  # by then all credit is used
    scenario = Scenario(
        [Plan(samples, BATCH, shuffle=True)],
        steady(_SAMPLE_S),
        batches=skip + max(_MEASURED, workers),
        workers=Ray(workers),
        nodes=-(-workers // _CORES),
        skip=skip,
    )
    engine_us = min(simulate(scenario).engine_us() for _ in range(3 if workers < 1000 else 2))
    return Cost(samples, workers, engine_us, _memory(replace(scenario, batches=skip + 1)))


def _memory(scenario: Scenario) -> int:
    """Bytes that lines of Stoker's own have allocated, and that are alive at the end."""
    tracemalloc.start()
    try:
        outcome = simulate(scenario)
        taken = tracemalloc.take_snapshot()
        del outcome
    finally:
        tracemalloc.stop()
    ours = tracemalloc.Filter(True, str(Path(stoker.__file__).parent / "*"))
    return sum(line.size for line in taken.filter_traces([ours]).statistics("filename"))
