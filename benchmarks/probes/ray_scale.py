"""Samples a second of a dataset that waits, on so many nodes of a Ray cluster."""

from __future__ import annotations

from time import perf_counter

import stoker
from benchmarks.datasets import Waiting
from benchmarks.probes.ray_cluster import cluster

_WAIT_S = 0.005  # a sample
_BATCH = 8
_WORKERS = 2  # on each node
_BATCHES = 150  # for each worker: 6 s
_LEAD_IN = 10  # and before the clock runs


def measure(nodes: int) -> dict[str, float]:
    workers = nodes * _WORKERS
    dataset = Waiting(_BATCH * workers * (_BATCHES + _LEAD_IN) * 2, _WAIT_S)
    with cluster(nodes, _WORKERS), stoker.Loader(dataset, _BATCH, workers=stoker.Ray(workers)) as loader:
        batches = iter(loader)
        for _ in range(workers * _LEAD_IN):
            next(batches)
        begin = perf_counter()
        for _ in range(workers * _BATCHES):
            next(batches)
        return {"samples_per_s": workers * _BATCHES * _BATCH / (perf_counter() - begin)}
