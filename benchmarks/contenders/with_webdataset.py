"""webdataset: its pipeline decodes and batches, its `WebLoader` has two workers that share the archives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import webdataset

from benchmarks.contenders.contender import PREFETCH, Job, Stream


def open_loader(job: Job) -> Stream:
    workload = job.workload
    archives = webdataset.WebDataset(list(job.dataset), shardshuffle=False)
    batches = archives.decode("rgb8").to_tuple("__key__", "jpg", "cls").batched(workload.batch_size)
    loader: Any = webdataset.WebLoader(
        batches, batch_size=None, num_workers=workload.workers, persistent_workers=True, prefetch_factor=PREFETCH
    )

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), workload.batches, lambda: None)
