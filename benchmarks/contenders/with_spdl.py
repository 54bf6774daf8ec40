"""SPDL: its pipeline of threads, at the same concurrency as the others have workers.

Threads are SPDL's own recommendation and share one process, so a batch is never handed over. One stage fetches and
stacks a whole batch: a task per sample costs SPDL more than most samples do, and was slower even where the workload
only waits. The source is endless, so one pipeline serves all epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from spdl.pipeline import PipelineBuilder

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Array, fetch


def open_loader(job: Job) -> Stream:
    def load(indices: list[int]) -> Array:
        return np.stack(fetch(job.dataset, indices))

    threads = job.workload.threads or job.workload.workers
    builder: Any = PipelineBuilder()
    builder = builder.add_source(job.index_batches())
    builder = builder.pipe(load, concurrency=threads, output_order="input").add_sink(threads * PREFETCH)
    pipeline = builder.build(num_threads=threads)
    pipeline.start()

    def batches() -> Iterator[Any]:
        yield from pipeline.get_iterator()

    return Stream(batches(), job.workload.batches, pipeline.stop)
