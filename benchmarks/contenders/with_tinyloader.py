"""tinyloader: `load_with_workers` with its shared memory on, one request a batch, endless items.

Its `post_process` must copy before it returns, since the block goes back to the pool then; its documentation
copies into a tinygrad tensor. Here it is a plain numpy copy, which is quicker, so tinygrad's cost is not counted.
Blocks are twice the workers: with the default, one a worker, a worker waits for each copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tinyloader.loader import Loader, load_with_workers

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.datasets import Array, Dataset, fetch


class _Batches(Loader):  # type: ignore[misc]
    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def make_request(self, item: list[int]) -> list[int]:
        return item

    def load(self, request: list[int]) -> tuple[Array, ...]:
        return (np.stack(fetch(_dataset_of_worker or self.dataset, request)),)

    def post_process(self, response: tuple[Array, ...]) -> Any:
        return tuple(array.copy() for array in response)

    def __reduce__(self) -> Any:
        # The loader is pickled with every request: the dataset must not travel with it.
        return _Batches, (None,)


# Set before the pool forks: it is how a worker comes by the dataset without unpickling it for each batch.
_dataset_of_worker: Dataset | None = None


def open_loader(job: Job) -> Stream:
    global _dataset_of_worker
    _dataset_of_worker = job.dataset
    workers = job.workload.workers
    manager: Any = load_with_workers(
        _Batches(job.dataset),
        job.index_batches(),
        workers,
        shared_memory_enabled=True,
        memory_pool_block_count=workers * PREFETCH,
    )
    # Closing is called last, and may hang when batches are under way: the child's process then ends it.
    return Stream(manager.__enter__(), job.workload.batches, lambda: manager.__exit__(None, None, None))
