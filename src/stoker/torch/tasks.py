"""Tasks: what workers are given, one by one, no further ahead than there is room; and which of them are out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stoker.torch.progress import Progress
from stoker.torch.sampling import Pass
from stoker.torch.work import Task


class Tasks:
    """The tasks of one epoch that are out, in the order in which they were given out."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._out: dict[int, Task] = {}

    def done(self, serial: int | None) -> Task:
        """The task whose result has come; None: the one that has been out for longest."""
        return self._out.pop(next(iter(self._out)) if serial is None else serial)

    def _give(self, task: Task) -> Task:
        self._out[task.serial] = task
        return task

    def _wants_state(self) -> bool:
        """Whether a snapshot may be taken after the next task is done, or before each worker has done another."""
        every = self._progress.every
        return bool(every) and self._progress.yielded % every + len(self._out) + 1 + self._progress.num_workers >= every


class MapTasks(Tasks):
    """Batches of a map-style dataset, as a sampler has them.

    Args:
        indices: Of the sampler, from where the consumer is.
        progress: Of the consumer.
        pinned: Batch k is made by worker k mod ``num_workers``, so that its random numbers are torch's.
    """

    def __init__(self, indices: Pass, progress: Progress, *, pinned: bool) -> None:
        super().__init__(progress)
        self._indices, self._pinned = indices, pinned
        self._taken = frozenset(progress.taken)
        self._made = [0] * progress.num_workers

    def __iter__(self) -> Iterator[Task]:
        progress, workers = self._progress, self._progress.num_workers
        for index in self._indices:
            serial = self._indices.pulled - 1
            if self._indices.has_state and self._wants_state():
                progress.sampler_states[serial + 1] = self._indices.state_dict()
            if serial not in self._taken:
                worker = serial % workers
                nth, self._made[worker] = self._made[worker], self._made[worker] + 1
                task = Task(progress.epoch, serial, worker, nth, index, self._wants_state(), None)
                yield self._give(task if self._pinned else task._replace(worker=None, nth=0))


class IterableTasks(Tasks):
    """Batches of an iterable dataset, of which each worker has its own: one of each in turn, as long as it has any.

    Args:
        index: What torch's sampler gives for such a dataset: a list as long as a batch, or None for a single sample.
        progress: Of the consumer.
        made: How many batches each worker has made.
    """

    def __init__(self, index: Any, progress: Progress, *, made: list[int]) -> None:
        super().__init__(progress)
        self._index, self._made = index, list(made)
        self._next = progress.last_worker + 1

    def __iter__(self) -> Iterator[Task]:
        progress, workers, serial = self._progress, self._progress.num_workers, 0
        while len(progress.ended) < workers:
            worker, self._next = self._next % workers, self._next + 1
            if worker not in progress.ended:
                nth = self._made[worker]
                self._made[worker] += 1
                wants = self._wants_state()
                yield self._give(Task(progress.epoch, serial, worker, nth, self._index, wants, progress.shared_seed))
                serial += 1
