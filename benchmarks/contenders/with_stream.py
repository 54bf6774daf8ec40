"""`stoker.stream`: what it gives lies in shared memory, uncopied."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import stoker
from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Array, Dataset


@dataclass(frozen=True)
class Load:
    """An array and its label."""

    dataset: Dataset

    def __call__(self, item: int) -> tuple[Array, Array]:
        return self.dataset[item], np.array(item % 10)


def open_loader(job: Job) -> Stream:
    workers = stoker.Processes(job.workload.workers)
    results: Any = stoker.stream(Load(job.dataset), count(), workers=workers, prefetch=PREFETCH)
    return Stream(results, job.workload.batches, results.close)
