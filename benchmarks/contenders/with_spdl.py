"""SPDL: its pipeline of threads, at the same concurrency as the others have workers.

Threads are SPDL's own recommendation and share one process, so a batch is never handed over; it is one stage
that fetches and stacks a whole batch, since a task per sample costs SPDL more than most samples do. Where the
workload waits, the stage fetches single samples, as many at once as there are threads, and `aggregate` batches
them. The source is endless, so one pipeline serves all epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from spdl.pipeline import Pipeline, PipelineBuilder

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Array, fetch


def open_loader(job: Job) -> Stream:
    pipeline = _of_samples(job) if job.workload.threads else _of_batches(job)
    pipeline.start()

    def batches() -> Iterator[Any]:
        yield from pipeline.get_iterator()

    return Stream(batches(), job.workload.batches, pipeline.stop)


def _of_batches(job: Job) -> Pipeline[Any]:
    def load(indices: list[int]) -> Array:
        return np.stack(fetch(job.dataset, indices))

    workers = job.workload.workers
    builder: Any = PipelineBuilder().add_source(job.index_batches())
    builder = builder.pipe(load, concurrency=workers, output_order="input").add_sink(workers * PREFETCH)
    pipeline: Pipeline[Any] = builder.build(num_threads=workers)
    return pipeline


def _of_samples(job: Job) -> Pipeline[Any]:
    threads = job.workload.threads
    builder: Any = PipelineBuilder().add_source(chain.from_iterable(job.index_batches()))
    builder = builder.pipe(job.dataset.__getitem__, concurrency=threads, output_order="input")
    builder = builder.aggregate(job.workload.batch_size).pipe(np.stack).add_sink(threads * PREFETCH)
    # One thread more, so that stacking never takes one from those that wait.
    pipeline: Pipeline[Any] = builder.build(num_threads=threads + 1)
    return pipeline
