"""torch's `DataLoader`, or one that takes its arguments, with persistent workers, default start method and default
collation into shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from benchmarks.contenders.contender import PREFETCH, Job, Stream


def open_loader(job: Job, dataset: Any = None, *, kind: Any = DataLoader, **instead: Any) -> Stream:
    """`dataset`, the loader's class and its options: in the place of the job's, for a peer whose loader this is."""
    workload = job.workload
    options: dict[str, Any] = {
        "batch_size": workload.batch_size,
        "shuffle": job.shuffle,
        "num_workers": workload.workers,
        "persistent_workers": True,
        "prefetch_factor": PREFETCH,
        "collate_fn": job.collate,
    }
    if not workload.workers:
        options |= {"persistent_workers": False, "prefetch_factor": None}
    loader: Any = kind(job.dataset if dataset is None else dataset, **options | instead)
    if workload.through is not None:
        loader = workload.through(loader)

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), workload.batches, lambda: None)
