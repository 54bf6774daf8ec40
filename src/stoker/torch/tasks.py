"""Tasks: what workers are given, in bundles, no further ahead than there is room; and which of them are out."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from itertools import chain
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
        greets: Each worker is greeted first.
    """

    def __init__(self, progress: Progress, width: int, *, greets: bool) -> None:
        self._progress, self._width = progress, width
        self.out: dict[int, Task] = {}  # by serial number, in the order in which the consumer gets their results
        self.bundles: dict[int, tuple[Task, ...]] = {}  # in which these are, by the number of the first in each
        self.size = 1  # of a bundle
        self._pulled: list[Task] = []  # for the next bundles
        self._ready: list[tuple[Task, ...]] = [(task,) for task in _greetings(progress)] if greets else []
        self.out.update((bundle[0].serial, bundle[0]) for bundle in self._ready)
        self.bundles.update((bundle[0].serial, bundle) for bundle in self._ready)
        self._at = 0  # the next one of these

    def __iter__(self) -> Iterator[tuple[Task, ...]]:
        return self

    def __next__(self) -> tuple[Task, ...]:
        """No generator, which an interrupt would end."""
        if self._at == len(self._ready):
            self._get_ready()
        if self._at == len(self._ready):
            raise StopIteration
        bundle = self._ready[self._at]
        self._at += 1  # at once with giving it: no call in between
        return bundle

    def _get_ready(self) -> None:
        """May be broken off, and is then done again."""
        # One at a time, nothing is asked of a sampler before there is a worker for it.
        wanted = self.size * self._width if self.size > 1 else 1
        while len(self._pulled) < wanted and self._pull(wanted - len(self._pulled)):
            pass
        of_worker: dict[int | None, list[Task]] = {}
        for task in self._pulled:
            self.out[task.serial] = task
            of_worker.setdefault(task.worker, []).append(task)
        ready = [tuple(tasks) for tasks in of_worker.values()]
        self.bundles.update((bundle[0].serial, bundle) for bundle in ready)
        self._ready, self._at, self._pulled = ready, 0, []  # at once

    @abstractmethod
    def _pull(self, wanted: int) -> bool:
        """Puts the next task behind those that were pulled. False if there is none any more.

        ``wanted``: how many will be asked for, this one included.
        """

    def settle(self, task: Task) -> None:
        """Its result is not needed any more."""
        self.out.pop(task.serial, None)
        # Bundles come in the order of their first tasks, and a bundle is done with its last.
        for first, bundle in list(self.bundles.items()):
            if bundle[-1].serial in self.out:
                break
            del self.bundles[first]

    def _least_busy(self, workers: list[int], first: int) -> int:
        """Of these workers, the one with the fewest tasks; of several, the one whose turn it is from ``first`` on."""
        count = self._progress.num_workers
        tasks = Counter(task.worker for task in chain(self.out.values(), self._pulled))
        return min(workers, key=lambda worker: (tasks[worker], (worker - first) % count))

    def _wants_state(self) -> bool:
        """Whether a snapshot may be taken after the next task is done, or before each worker has done another."""
        every, ahead = self._progress.every, len(self.out) + self.size * self._width
        return bool(every) and self._progress.yielded % every + ahead + self._progress.num_workers >= every


def _greetings(progress: Progress) -> list[Task]:
    numbers = range(progress.num_workers)
    return [Task(progress.epoch, k - len(numbers), k, 0, None, True, progress.shared_seed) for k in numbers]


class MapTasks(Tasks):
    """Batches of a map-style dataset, as a sampler has them.

    Args:
        indices: Of the sampler, from where the consumer is.
        progress: Of the consumer.
        pinned: Batch k is made by worker k mod ``num_workers``, so that its random numbers are torch's.
        in_order: False: by the one that has the least to do, and still by it alone.
        greets: As above.
    """

    def __init__(self, indices: Pass, progress: Progress, *, pinned: bool, in_order: bool, greets: bool) -> None:
        super().__init__(progress, progress.num_workers if pinned else 1, greets=greets)
        self._in_order = in_order
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

    def _pull(self, wanted: int) -> bool:
        found = self._indices.first(wanted)
        if found is None:
            return False
        serial, index = found
        is_there = bool(self._pulled) and self._pulled[-1].serial == serial  # an interrupt came before it was dropped
        if serial not in self._taken and not is_there:
            self._pulled.append(self._task(serial, index))
        self._indices.drop(serial)
        return True

    def _task(self, serial: int, index: Any) -> Task:
        epoch, wants = self._progress.epoch, self._wants_state()
        if not self._pinned:
            return Task(epoch, serial, None, 0, index, wants, None)
        count = self._progress.num_workers
        worker = serial % count if self._in_order else self._least_busy(list(range(count)), serial % count)
        nth, self._made[worker] = self._made[worker], self._made[worker] + 1
        return Task(epoch, serial, worker, nth, index, wants, None)


class IterableTasks(Tasks):
    """Batches of an iterable dataset, of which each worker has its own: one of each in turn, as long as it has any.

    Args:
        index: What torch's sampler gives for such a dataset: a list as long as a batch, or None for a single sample.
        progress: Of the consumer.
        in_order: False: the next batch is one of the worker that has the least to do.
        greets: As above.
    """

    def __init__(self, index: Any, progress: Progress, *, in_order: bool, greets: bool) -> None:
        super().__init__(progress, progress.num_workers, greets=greets)
        self._index, self._in_order = index, in_order
        self._made = [progress.made.get(worker, 0) for worker in range(progress.num_workers)]
        self._next, self._serial = progress.last_worker + 1, progress.low

    def _pull(self, wanted: int) -> bool:
        progress, serial = self._progress, self._serial
        left = [worker for worker in range(progress.num_workers) if worker not in progress.ended]
        if not left:
            return False
        first = self._next % progress.num_workers
        if self._in_order:
            worker = min(left, key=lambda worker: (worker - first) % progress.num_workers)
        else:
            worker = self._least_busy(left, first)
        nth = self._made[worker]
        if not self._pulled or self._pulled[-1].serial != serial:  # else an interrupt came right after it
            wants = self._wants_state()
            self._pulled.append(Task(progress.epoch, serial, worker, nth, self._index, wants, progress.shared_seed))
        self._made[worker], self._next, self._serial = nth + 1, worker + 1, serial + 1  # at once
        return True
