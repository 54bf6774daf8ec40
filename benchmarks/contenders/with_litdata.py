"""LitData: chunks of 64 MB, its default, in a local folder, through its `StreamingDataLoader`.

The chunks are written by what `optimize` itself writes them with, without its processes. As tensors, which it reads
where they lie; numpy arrays are copied, a whole window of them for each that is asked for, at a tenth of the speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import litdata
import numpy as np
import torch
from litdata.streaming.cache import Cache

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Dataset


def _write(images: Dataset, folder: Path) -> None:
    cache = Cache(str(folder), chunk_bytes="64MB")
    for index in range(len(images)):
        cache[index] = torch.from_numpy(np.ascontiguousarray(images[index]))
    cache.done()
    cache.merge(1)


def open_loader(job: Job) -> Stream:
    workload, folder = job.workload, job.scratch / "litdata"
    _write(job.dataset, folder)
    loader: Any = litdata.StreamingDataLoader(
        litdata.StreamingDataset(str(folder), shuffle=job.shuffle),
        batch_size=workload.batch_size,
        num_workers=workload.workers,
        persistent_workers=True,
        prefetch_factor=PREFETCH,
    )

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), workload.batches, lambda: None)
