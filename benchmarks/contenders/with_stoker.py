"""Stoker: `Loader` on two process workers, or on threads where the workload waits. Batches are numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import stoker
from benchmarks.contenders.contender import PREFETCH, Job, Stream


def open_loader(job: Job, **keeping: Any) -> Stream:
    """`keeping`: `cache=` or `rotation=`."""
    workload = job.workload
    workers = stoker.Threads(workload.threads) if workload.threads else stoker.Processes(workload.workers)
    loader: Any = stoker.Loader(
        job.dataset, workload.batch_size, shuffle=job.shuffle, workers=workers, prefetch=PREFETCH, **keeping
    )

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), len(loader), loader.close)
