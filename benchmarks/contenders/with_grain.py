"""Grain: `MapDataset.source(...)`, to an `IterDataset`, batched, then `mp_prefetch` with two processes.

Batching after `to_iter_dataset` is the form in which Grain's workers stack straight into shared memory. No reading
threads for data in memory, as Grain's `ReadOptions` recommends. Where the workload waits, it is the other way
round: no processes and as many reading threads as the workload has.
"""

from __future__ import annotations

from typing import Any

import grain

from benchmarks.contenders.contender import PREFETCH, Job, Stream


def open_loader(job: Job) -> Stream:
    workload = job.workload
    samples: Any = grain.MapDataset.source(job.dataset)
    if job.shuffle:
        samples = samples.shuffle(seed=0)
    samples = samples.repeat()
    if workload.threads:
        ahead = workload.threads * PREFETCH * workload.batch_size
        reading = grain.ReadOptions(num_threads=workload.threads, prefetch_buffer_size=ahead)
        batches = samples.to_iter_dataset(reading).batch(workload.batch_size)
    else:
        reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
        batches = (
            samples.to_iter_dataset(reading)
            .batch(workload.batch_size)
            .mp_prefetch(
                grain.MultiprocessingOptions(num_workers=workload.workers, per_worker_buffer_size=PREFETCH)
            )
        )
    iterator = iter(batches)
    return Stream(iterator, workload.batches, getattr(iterator, "close", lambda: None))
