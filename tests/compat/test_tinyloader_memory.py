"""Memory is never written while anybody can see it; of a model that gives it back too soon, the same test finds out."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from stoker.compat.tinyloader import Loader, SharedMemoryShim, load, load_with_workers

SIZE = 4096
ITEMS = 120
HELD_BEYOND_BLOCKS = 40


class Watching(Loader):
    """Looks at what it gets, and again after a while, and at the end at what it has kept. Copies nothing."""

    def __init__(self) -> None:
        self.changed = 0
        self.kept: list[tuple[int, np.ndarray]] = []
        self.next = 0

    def load(self, request: int) -> tuple[np.ndarray, ...]:
        return np.full(SIZE, request), np.array(request)

    def post_process(self, response: tuple[np.ndarray, ...]) -> int:
        array, number = response
        due, self.next = self.next, self.next + 1
        self.look(due, array, number)
        time.sleep(0.001)  # in which others may write
        self.look(due, array, number)
        if due % (ITEMS // HELD_BEYOND_BLOCKS) == 0:
            self.kept.append((due, array[1::2]))
        return due

    def look(self, due: int, *arrays: np.ndarray) -> None:
        self.changed += any((array != due).any() for array in arrays)

    def look_back(self) -> None:
        for due, view in self.kept:
            self.look(due, view)


class HastyPool:
    """A deliberately wrong model: a block goes back to the pool before ``post_process`` has seen what is in it."""

    def __init__(self, loader: Loader, blocks: int = 4) -> None:
        self._loader = loader
        self._free: queue.SimpleQueue[tuple[np.ndarray, np.ndarray]] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(blocks):
            self._free.put((np.zeros(SIZE, int), np.zeros((), int)))

    def __call__(self, items: range) -> Iterator[Any]:
        worker = threading.Thread(target=self._work, args=[items])
        worker.start()
        for _ in items:
            block = self._full.get()
            self._free.put(block)
            yield self._loader.post_process(block)
        worker.join()

    def _work(self, items: range) -> None:
        for item in items:
            block = self._free.get()
            for place, array in zip(block, self._loader.load(item), strict=True):
                place[...] = array
            self._full.put(block)


def changes_seen(run: Callable[[Loader], Callable[[range], Any]]) -> int:
    loader = Watching()
    assert list(run(loader)(range(ITEMS))) == list(range(ITEMS))
    loader.look_back()
    return loader.changed


@pytest.mark.parametrize(
    "run",
    [
        lambda loader: partial(load, loader),
        lambda loader: partial(load_with_workers, loader, num_worker=2),
        lambda loader: partial(load_with_workers, loader, num_worker=2, shared_memory_enabled=True),
        lambda loader: partial(load_with_workers, SharedMemoryShim(loader, None, 1), num_worker=2),
        lambda loader: partial(load_with_workers, SharedMemoryShim(loader, None, 8), num_worker=2),
    ],
    ids=["here", "workers", "shared memory", "one block", "eight blocks"],
)
def test_what_is_seen_or_held_never_changes(run):
    assert changes_seen(run) == 0


def test_a_pool_that_is_too_hasty_is_found_out():
    assert changes_seen(HastyPool) > 0
