"""How the loss of a node, or a slow one, shows in what the consumer gets."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.simulation.assumptions import ON_RAY, varied
from benchmarks.simulation.coverage import delivered
from benchmarks.simulation.scenario import Failure, Outcome, Scenario, simulate
from stoker import Ray
from stoker.plan import Plan

NODES, CORES = 8, 8
WORKERS = NODES * (CORES - 1)  # a core of each node is spare
CUT_AT = 15.0
BIN_S = 0.5
_BATCH, _SAMPLE_S, _SPREAD = 32, 5e-3, 0.2
_SECONDS = 35.0
_STEP_S = 4e-3  # of the training loop, which then needs 250 batches a second: workers can make 350


@dataclass(frozen=True)
class Loss:
    """What came of it. ``rates``: batches a second, in bins of ``BIN_S``."""

    title: str
    batches_per_s: float  # before
    longest_wait: float
    deaths: int
    is_exact: bool
    rates: list[float]


def measure() -> Iterator[Loss]:
    base = Scenario(
        [Plan(10**12, _BATCH, shuffle=True)],
        varied(_SAMPLE_S, spread=_SPREAD),
        batches=round(_SECONDS * WORKERS / (_BATCH * _SAMPLE_S)),
        workers=Ray(WORKERS),
        nodes=NODES,
        cores=CORES,
        failures=[Failure(2, CUT_AT)],
    )
    yield _loss("in order", base)
    yield _loss("in order, a step of 4 ms", replace(base, step_s=_STEP_S, batches=8000))
    yield _loss("the same, prefetch=32", replace(base, step_s=_STEP_S, batches=8000, prefetch=32))
    yield _loss("in_order=False", replace(base, in_order=False))
    quick = replace(base, assumptions=replace(ON_RAY, found_s=1.0))
    yield _loss("in order, found in 1 s", quick)
    slow = replace(base, failures=(), slow_nodes=[(2, 10.0)])
    yield _loss("a slow node, in order", replace(slow, batches=3000))
    yield _loss("a slow node, in order, prefetch=32", replace(slow, prefetch=32))
    yield _loss("a slow node, in_order=False", replace(slow, in_order=False))


def _loss(title: str, scenario: Scenario) -> Loss:
    outcome = simulate(scenario)
    times = outcome.consumers[0].times
    before = [time for time in times if CUT_AT - 5.0 <= time < CUT_AT]
    waits = [after - then for then, after in itertools.pairwise(times) if after > CUT_AT]
    return Loss(
        title,
        len(before) / 5.0,
        max(waits),
        outcome.deaths(),
        _is_exact(scenario, outcome),
        _rates(times),
    )


def _is_exact(scenario: Scenario, outcome: Outcome) -> bool:
    starts = [consumer.starts for consumer in outcome.consumers]
    if scenario.in_order:
        return delivered(scenario.plans, starts)
    # The cursor has refused any batch that came twice; what is not there yet is after its position.
    consumer = outcome.consumers[0]
    return (
        len(consumer.starts)
        == len(set(consumer.starts))
        == consumer.cursor.position // _BATCH + len(consumer.cursor.taken)
    )


def _rates(times: Sequence[float]) -> list[float]:
    bins = Counter(int(time / BIN_S) for time in times)
    return [bins[number] / BIN_S for number in range(int(times[-1] / BIN_S))]
