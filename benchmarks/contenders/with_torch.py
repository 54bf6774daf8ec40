"""torch's `DataLoader` with persistent workers, default start method and default collation into shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from benchmarks.contenders.contender import PREFETCH, Job, Stream


def open_loader(job: Job) -> Stream:
    workload = job.workload
    loader: Any = DataLoader(
        job.dataset,
        workload.batch_size,
        shuffle=job.shuffle,
        num_workers=workload.workers,
        persistent_workers=True,
        prefetch_factor=PREFETCH,
    )

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), workload.batches, lambda: None)
