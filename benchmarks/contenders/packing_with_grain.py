"""Grain's own packing, first fit or best fit, then `batch`, then `mp_prefetch` with two processes, each of which packs
its part of the samples."""

from __future__ import annotations

from typing import Any

import grain

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.contenders.packed_stream import ROW, TOKENS, PackedStream

SEGMENTS = f"{TOKENS}_segment_ids"
_BINS = 64  # rows that are open at a time: with more there is less padding, and a search in more of them


def packed(dataset: Any, *, best: bool, shuffle: bool, repeat: bool) -> Any:
    """Packed rows of all samples, once or without end, in this process."""
    samples: Any = grain.MapDataset.source(dataset)
    samples = samples.shuffle(seed=0) if shuffle else samples
    samples = samples.map(lambda tokens: {TOKENS: tokens})
    samples = samples.repeat() if repeat else samples
    reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    experimental = grain.experimental
    kind = experimental.BestFitPackIterDataset if best else experimental.FirstFitPackIterDataset
    return kind(samples.to_iter_dataset(reading), length_struct={TOKENS: ROW}, num_packing_bins=_BINS)


def open_loader(job: Job, *, best: bool) -> PackedStream:
    workload = job.workload
    processes = grain.MultiprocessingOptions(workload.workers, per_worker_buffer_size=PREFETCH)
    batches = packed(job.dataset, best=best, shuffle=job.shuffle, repeat=True).batch(workload.batch_size)
    iterator = iter(batches.mp_prefetch(processes))
    closer = getattr(iterator, "close", lambda: None)
    return PackedStream(Stream(iterator, workload.batches, closer), SEGMENTS)
