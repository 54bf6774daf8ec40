"""Ray Data: a range of indices, `map_batches` with the same decoding, `iter_batches`.

Tasks do the work. (A pool of actors that takes all CPUs waits for ever: the tasks that read the range get none.) The
dataset lies in the object store, where tasks read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contenders import local_ray
from benchmarks.contenders.contender import LEAD_IN_BATCHES, PREFETCH, Job, Stream
from benchmarks.datasets import Array, fetch

_EPOCHS = 1000  # in one execution, if it is tuned: each one begins slowly


def open_loader(job: Job, *, tuned: bool) -> Stream:
    """As its documentation has it: `map_batches` with a batch size, and `iter_batches` for each epoch. `tuned`: a task
    gets a whole block of the range and yields batch after batch, so that reading the range is fused with it, and one
    execution goes on for all epochs."""
    ray = local_ray.start(job.workload.workers)
    from ray import data

    data.DataContext.get_current().enable_progress_bars = False
    size, length, ref = job.workload.batch_size, len(job.dataset), ray.put(job.dataset)

    def decode(ids: Array) -> dict[str, Array]:
        return {"data": np.stack(fetch(ray.get(ref), (ids % length).tolist()))}

    def decode_block(block: dict[str, Array]) -> Iterator[dict[str, Array]]:
        for start in range(0, len(block["id"]), size):
            yield decode(block["id"][start : start + size])

    if tuned:
        made = data.range(_EPOCHS * length).map_batches(decode_block, batch_size=None)
    else:
        made = data.range(length).map_batches(lambda batch: decode(batch["id"]), batch_size=size)

    def epochs() -> Iterator[Any]:
        while True:
            yield from made.iter_batches(batch_size=size, batch_format="numpy", prefetch_batches=PREFETCH)

    return Stream(epochs(), job.workload.batches, lambda: None, lead_in=_made_ahead(ray, job))


def _made_ahead(ray: Any, job: Job) -> int:
    """Batches that may lie in the object store when a round begins: as many as fit into half of it."""
    fit = ray.cluster_resources()["object_store_memory"] / 2 / job.workload.batch_bytes
    return int(max(fit, LEAD_IN_BATCHES))
