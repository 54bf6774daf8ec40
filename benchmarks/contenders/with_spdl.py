"""SPDL: its pipeline of threads, at the same concurrency as the others have workers.

Threads are SPDL's own recommendation and share one process, so a batch is never handed over. One stage fetches and
stacks a whole batch: a task per sample costs SPDL more than most samples do, and was slower even where the workload
only waits. The source is endless, so one pipeline serves all epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from spdl.pipeline import PipelineBuilder

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import fetch


def loading(job: Job) -> Callable[[list[int]], Any]:
    """Fetches and stacks a batch; of samples that are more than an array, with torch's `default_collate`."""
    dataset = job.dataset
    if isinstance(dataset[0], np.ndarray):
        return lambda indices: np.stack(fetch(dataset, indices))
    from torch.utils.data import default_collate

    make = job.collate or default_collate
    return lambda indices: make(fetch(dataset, indices))


def open_loader(job: Job) -> Stream:
    load = loading(job)
    threads = job.workload.threads or job.workload.workers
    builder: Any = PipelineBuilder()
    builder = builder.add_source(job.index_batches())
    builder = builder.pipe(load, concurrency=threads, output_order="input").add_sink(threads * PREFETCH)
    pipeline = builder.build(num_threads=threads)
    pipeline.start()

    def batches() -> Iterator[Any]:
        yield from pipeline.get_iterator()

    return Stream(batches(), job.workload.batches, pipeline.stop)
