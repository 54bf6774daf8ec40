"""The simulation, beside real loaders over the same dataset, whose samples take time.

What is compared does not depend on how busy the machine is. How well the speed agrees is measured by
`python -m benchmarks.simulate --only reality`.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simulation.reality import Waits, simulated, times_of

import stoker
from stoker import Processes, Threads
from stoker.plan import Plan

SAMPLES, BATCH = 150, 4
SECONDS = times_of(SAMPLES, spread=1.0, mean=1e-3)


def _real(workers, *, epochs=1, **options):
    """The indices of each batch, as they come."""
    with stoker.Loader(Waits(SECONDS), BATCH, shuffle=True, seed=5, workers=workers, **options) as loader:
        return [batch[:, 0].astype(int).tolist() for _ in range(epochs) for batch in loader]


def _simulated(workers, *, epochs=1, shard=(0, 1), **options):
    plan = Plan(SAMPLES, BATCH, shuffle=True, seed=5, shard=shard)
    consumer = simulated(workers, plan, SECONDS, epochs * len(plan), **options).consumers[0]
    of_start = {(batch.epoch, batch.start): batch for epoch in range(epochs) for batch in plan.batches(epoch)}
    keys = [(nth // len(plan), start) for nth, start in enumerate(consumer.starts)]
    return [list(plan.indices(of_start[key])) for key in keys]


@pytest.mark.parametrize("workers", [Threads(1), Threads(4), Processes(2)])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_batches_come_in_the_same_order(workers, prefetch):
    assert _simulated(workers, prefetch=prefetch) == _real(workers, prefetch=prefetch)


def test_epochs_follow_each_other_alike():
    assert _simulated(Threads(3), epochs=3) == _real(Threads(3), epochs=3)


@pytest.mark.parametrize("shard", [(0, 3), (2, 3)])
def test_a_shard_gets_the_same_batches(shard):
    assert _simulated(Threads(3), shard=shard) == _real(Threads(3), shard=shard)


def test_out_of_order_the_same_batches_come_each_once():
    real, found = _real(Threads(4), in_order=False), _simulated(Threads(4), in_order=False)
    assert sorted(real) == sorted(found)
    assert np.bincount(np.concatenate(found)).tolist() == [1] * SAMPLES


def test_one_worker_out_of_order_has_nobody_to_overtake():
    assert _simulated(Threads(1), in_order=False) == _real(Threads(1), in_order=False)
