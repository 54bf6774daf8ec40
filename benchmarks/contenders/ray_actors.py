"""Bare Ray actors with credit and no loader, as good as one can write it by hand.

One batch a call and two calls in flight an actor, so that none waits for the next one. Each stacks into memory that it
keeps, which Ray copies into the object store before the next call begins. The consumer takes batches in order and reads
them where they lie in the object store: they are not its own to write into, and pin the object while they live.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.contenders import local_ray
from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Array, Dataset, fetch


class Actor:
    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._out: Array | None = None

    def make(self, indices: Sequence[int]) -> Array:
        self._out = np.stack(fetch(self._dataset, indices), out=self._out)
        return self._out


def open_loader(job: Job) -> Stream:
    ray = local_ray.start(job.workload.workers)
    dataset = ray.put(job.dataset)
    kind = ray.remote(num_cpus=1)(Actor)
    actors = [kind.remote(dataset) for _ in range(job.workload.workers)]

    def batches() -> Iterator[Any]:
        indices = job.index_batches()
        turns = [(actor, actor.make.remote(next(indices))) for _ in range(PREFETCH) for actor in actors]
        in_flight = deque(turns)
        turns.clear()
        while True:
            actor, ref = in_flight.popleft()
            batch = ray.get(ref)
            del ref
            in_flight.append((actor, actor.make.remote(next(indices))))
            yield batch
            del batch

    return Stream(batches(), job.workload.batches, ray.shutdown)
