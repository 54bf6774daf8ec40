"""`stoker.compat.swift_loader`: Stoker behind SwiftLoader's signature, with as many batches ahead as the native one.

One consumer, so that the work is the same. With several, each sample's place must be found: some 30 ns more a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Dataset
from stoker.compat.swift_loader import SwiftLoader


def _itself(dataset: Dataset) -> Dataset:
    """A dataset class that makes nothing, so that the workers share the arrays as they do natively."""
    return dataset


def open_loader(job: Job) -> Stream:
    workload = job.workload
    loader = SwiftLoader(
        _itself,
        {"dataset": job.dataset},
        workload.batch_size,
        nb_consumer=1,
        worker_per_consumer=workload.workers,
        shuffle=job.shuffle,
        data_queue_size=workload.workers * PREFETCH,
    )
    loader.start(0)

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), workload.batches, loader.close)
