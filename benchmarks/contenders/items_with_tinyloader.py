"""tinyloader's `load_with_workers` with its shared memory on, an item a request; or Stoker behind the same signature.

tinyloader's `post_process` must copy before it returns, as its documentation asks: the block goes back to the pool
then. Blocks are twice the workers; with the default, one a worker, a worker waits for each copy. The front's arrays
stay as long as somebody holds them, so there `post_process` gives them as they are.
"""

from __future__ import annotations

import importlib
from itertools import count
from typing import Any

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.contenders.with_stream import Load
from benchmarks.datasets import Array

# Set before the pool forks: the loader is pickled with every request, and the dataset must not travel with it.
_load_of_worker: Load | None = None


def open_loader(job: Job, front: bool) -> Stream:
    return _open_front(job) if front else _open_tinyloader(job)


def _open_front(job: Job) -> Stream:
    module = importlib.import_module("stoker.compat.tinyloader")
    load = Load(job.dataset)

    class Items(module.Loader):  # type: ignore[misc, name-defined]
        def make_request(self, item: int) -> int:
            return item

        def load(self, request: int) -> tuple[Array, ...]:
            return load(request)

        def post_process(self, response: tuple[Array, ...]) -> Any:
            return response

    return _entered(job, module.load_with_workers(Items(), count(), job.workload.workers, shared_memory_enabled=True))


def _open_tinyloader(job: Job) -> Stream:
    global _load_of_worker
    from tinyloader.loader import load_with_workers

    _load_of_worker = Load(job.dataset)
    workers = job.workload.workers
    blocks = {"shared_memory_enabled": True, "memory_pool_block_count": workers * PREFETCH}
    return _entered(job, load_with_workers(TinyItems(), count(), workers, **blocks))


class TinyItems:
    """Has what tinyloader's `Loader` asks for, which is all that it uses of it."""

    def make_request(self, item: int) -> int:
        return item

    def load(self, request: int) -> tuple[Array, ...]:
        assert _load_of_worker is not None
        return _load_of_worker(request)

    def post_process(self, response: tuple[Array, ...]) -> Any:
        return tuple(array.copy() for array in response)

    def shutdown(self) -> None:
        pass


def _entered(job: Job, manager: Any) -> Stream:
    # Closing is called last, and may hang when items are under way: the child's process then ends it.
    return Stream(iter(manager.__enter__()), job.workload.batches, lambda: manager.__exit__(None, None, None))
