"""Stoker: `Loader` on two process workers, or on threads where the workload waits. Batches are numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import stoker
from benchmarks.contenders.contender import PREFETCH, Job, Stream


def open_loader(job: Job, dataset: Any = None, **instead: Any) -> Stream:
    """`dataset` and options of the loader, such as `cache=`: in the place of the job's, or beside them."""
    workload = job.workload
    workers: Any = stoker.Threads(workload.threads) if workload.threads else workload.workers
    options: dict[str, Any] = {
        "shuffle": job.shuffle,
        "workers": workers,
        "prefetch": PREFETCH,
        "collate": getattr(job.dataset, "collate_of_stoker", None) or job.collate,
    }
    loader: Any = stoker.Loader(job.dataset if dataset is None else dataset, workload.batch_size, **options | instead)

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    # Of chunk files the length is not asked for: they would all be read to count their samples.
    return Stream(epochs(), len(loader) if dataset is None else workload.batches, loader.close)
