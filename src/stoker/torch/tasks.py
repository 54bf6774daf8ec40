"""Tasks: what workers are given, in bundles, no further ahead than there is room; and which of them are out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any

from stoker.torch.lookahead import Lookahead
from stoker.torch.progress import Progress
from stoker.torch.sampling import Pass
from stoker.torch.work import Task


class Tasks:
    """The tasks of one epoch. Iterated, it gives bundles of them, each for one worker.

    A bundle of several saves most of what it costs to ask a worker for a batch, where batches are quick to make. Then
    each worker gets those batches of the next rounds that it is to make.

    Args:
        progress: Of the consumer.
        width: How many tasks there are in a round: one for each worker, or just one where any worker may do it.
    """

    def __init__(self, progress: Progress, width: int) -> None:
        self._progress, self._width = progress, width
        self.out: dict[int, Task] = {}  # by serial number, in the order in which the consumer gets their results
        self.bundles: dict[int, tuple[Task, ...]] = {}  # in which these are, by the number of the first in each
        self.size = 1  # of a bundle

    def __iter__(self) -> Iterator[tuple[Task, ...]]:
        singles = self._singles()
        while True:
            # One at a time, nothing is asked of a sampler before there is a worker for it.
            tasks = list(islice(singles, self.size * self._width if self.size > 1 else 1))
            if not tasks:
                return
            of_worker: dict[int | None, list[Task]] = {}
            for task in tasks:
                self.out[task.serial] = task
                of_worker.setdefault(task.worker, []).append(task)
            for bundle in map(tuple, of_worker.values()):
                self.bundles[bundle[0].serial] = bundle
                yield bundle

    def settle(self, task: Task) -> None:
        """Its result is not needed any more."""
        self.out.pop(task.serial, None)
        # Bundles come in the order of their first tasks, and a bundle is done with its last.
        for first, bundle in list(self.bundles.items()):
            if any(one.serial in self.out for one in bundle):
                break
            del self.bundles[first]

    @abstractmethod
    def _singles(self) -> Iterator[Task]:
        """The tasks, in the order of their serial numbers."""

    def _wants_state(self) -> bool:
        """Whether a snapshot may be taken after the next task is done, or before each worker has done another."""
        every, ahead = self._progress.every, len(self.out) + self.size * self._width
        return bool(every) and self._progress.yielded % every + ahead + self._progress.num_workers >= every


class MapTasks(Tasks):
    """Batches of a map-style dataset, as a sampler has them.

    Args:
        indices: Of the sampler, from where the consumer is.
        progress: Of the consumer.
        pinned: Batch k is made by worker k mod ``num_workers``, so that its random numbers are torch's.
    """

    def __init__(self, indices: Pass, progress: Progress, *, pinned: bool) -> None:
        super().__init__(progress, progress.num_workers if pinned else 1)
        self._pass, self._pinned = indices, pinned
        self._indices = Lookahead(indices, progress.generators, self._keep_sampler_state)
        self._taken = frozenset(progress.taken)
        self._made = [0] * progress.num_workers

    def come_to(self, asked: int) -> None:
        """The sampler has been asked for so many indices since this began, as far as anybody can see."""
        self._indices.come_to(asked)

    def _keep_sampler_state(self, serial: int) -> None:
        if self._pass.has_state and self._wants_state():
            self._progress.sampler_states[serial + 1] = self._pass.state_dict()

    def _singles(self) -> Iterator[Task]:
        progress, workers = self._progress, self._progress.num_workers
        for serial, index in self._indices:
            if serial not in self._taken:
                worker = serial % workers
                nth, self._made[worker] = self._made[worker], self._made[worker] + 1
                task = Task(progress.epoch, serial, worker, nth, index, self._wants_state(), None)
                yield task if self._pinned else task._replace(worker=None, nth=0)


class IterableTasks(Tasks):
    """Batches of an iterable dataset, of which each worker has its own: one of each in turn, as long as it has any.

    Args:
        index: What torch's sampler gives for such a dataset: a list as long as a batch, or None for a single sample.
        progress: Of the consumer.
        made: How many batches each worker has made.
    """

    def __init__(self, index: Any, progress: Progress, *, made: list[int]) -> None:
        super().__init__(progress, progress.num_workers)
        self._index, self._made = index, list(made)
        self._next = progress.last_worker + 1

    def _singles(self) -> Iterator[Task]:
        progress, workers, serial = self._progress, self._progress.num_workers, 0
        while len(progress.ended) < workers:
            worker, self._next = self._next % workers, self._next + 1
            if worker not in progress.ended:
                nth = self._made[worker]
                self._made[worker] += 1
                wants = self._wants_state()
                yield Task(progress.epoch, serial, worker, nth, self._index, wants, progress.shared_seed)
                serial += 1
