"""Grain: `MapDataset.mix` of sources that are each shuffled and repeated, in batches, then `mp_prefetch`, as in
`with_grain.py`."""

from __future__ import annotations

from typing import Any

import grain

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.contenders.with_mix import WEIGHTS


def open_loader(job: Job) -> Stream:
    workload = job.workload
    sources: list[Any] = []
    for seed in range(len(WEIGHTS)):
        source: Any = grain.MapDataset.source(job.dataset)
        sources.append((source.shuffle(seed=seed) if job.shuffle else source).repeat())
    reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    processes = grain.MultiprocessingOptions(workload.workers, per_worker_buffer_size=PREFETCH)
    mixed: Any = grain.MapDataset.mix(sources, WEIGHTS)
    batches = mixed.batch(workload.batch_size, batch_fn=job.collate).to_iter_dataset(reading).mp_prefetch(processes)
    iterator = iter(batches)
    return Stream(iterator, workload.batches, getattr(iterator, "close", lambda: None))
