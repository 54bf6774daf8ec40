"""What is assumed of machines, of the network and of the user's code. Nothing else is made up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from stoker.plan import Batch, Plan, derive

GBIT_PER_S = 1e9 / 8  # in bytes a second

Service = Callable[[Batch], float]  # the seconds that a worker takes to make a batch


@dataclass(frozen=True)
class Assumptions:
    """What each thing costs.

    Attributes:
        latency_s: A message takes so long to the other side, beside what its bytes take.
        node_bytes_per_s: Out of each node.
        consumer_bytes_per_s: Into each consumer.
        call_s: In the consumer's receiving thread, for each call that comes back.
        copy_bytes_per_s: In the same thread, into a slot.
        run_s: In the consumer's own thread, for each run: to ask, to order, to send.
        batch_s: In the same thread, for each batch: to open it, and to hand it out.
        start_s: Until a worker is up.
        found_s: Until a worker's end is known here.
    """

    latency_s: float
    node_bytes_per_s: float = math.inf
    consumer_bytes_per_s: float = math.inf
    call_s: float = 0.0
    copy_bytes_per_s: float = math.inf
    run_s: float = 40e-6
    batch_s: float = 20e-6
    start_s: float = 0.0
    found_s: float = 0.0


# Workers of one machine: pipes and shared memory.
HERE = Assumptions(latency_s=60e-6, start_s=0.05, found_s=0.001)

# A cluster with 25 Gbit/s for each machine. 0.4 ms a call was measured with Ray 2.60 (docs/design/ray.md). A copy of
# 16 MiB runs at 19 GB/s where all of it is in caches; a quarter of that is what is left when it comes from elsewhere.
ON_RAY = Assumptions(
    latency_s=0.3e-3,
    node_bytes_per_s=25 * GBIT_PER_S,
    consumer_bytes_per_s=25 * GBIT_PER_S,
    call_s=0.4e-3,
    copy_bytes_per_s=5e9,
    start_s=3.0,
    found_s=5.0,
)


def steady(seconds: float) -> Service:
    """Each sample takes as long."""
    return lambda batch: (batch.stop - batch.start) * seconds


def varied(seconds: float, *, spread: float, seed: int = 0, stragglers: float = 0.0, factor: float = 1.0) -> Service:
    """Batches whose time a sample is lognormal, ``seconds`` in the mean and with that standard deviation of its
    logarithm. A share of them, ``stragglers``, takes ``factor`` times as long. It depends on the batch alone, so it is
    the same wherever and whenever the batch is made."""

    def service(batch: Batch) -> float:
        random = Random(derive(seed, batch.epoch, batch.start))
        each = seconds * random.lognormvariate(-spread * spread / 2, spread)
        slower = factor if random.random() < stragglers else 1.0
        return (batch.stop - batch.start) * each * slower

    return service


def by_sample(plan: Plan, seconds: Sequence[float]) -> Service:
    """Sample i takes ``seconds[i]``."""
    return lambda batch: sum(seconds[index] for index in plan.indices(batch))
