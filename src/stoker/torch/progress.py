"""Where the consumer is in an epoch: all that a state holds. It knows no worker, so it outlives an iterator.

A state has the form of torchdata's ``StatefulDataLoader``, one for ``num_workers=0`` and one for more, and beside it,
under ``_stoker``, what makes more of it possible: other numbers of workers, and batches that came out of order.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any

from stoker.torch.draws import Generators, captured, packed
from stoker.torch.sampling import Pass
from stoker.torch.seals import opened
from stoker.torch.work import Task

FINISHED = "_iterator_finished"
OWN = "_stoker"


@dataclass
class Snapshot:
    """Where it was at a step from which it can be gone on.

    Attributes:
        step: Batches that the consumer had.
        low: Batches of the sampler, all of which it had.
        taken: And others that it had.
        sampler: State of the pass over the sampler after ``low`` batches.
        workers: State of each worker's dataset, sealed, where it has one.
        made: Batches that the consumer had of each worker.
        ended: Workers whose datasets had given all.
        last_worker: That made the last batch.
    """

    step: int = 0
    low: int = 0
    taken: frozenset[int] = frozenset()
    sampler: dict[str, Any] = field(default_factory=dict)
    workers: dict[int, bytes] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)
    ended: frozenset[int] = frozenset()
    last_worker: int = -1

    def states(self) -> dict[int, tuple[int, bytes]]:
        """The same of the workers' datasets, with the batches that each had made by then."""
        return {worker: (self.made.get(worker, 0), state) for worker, state in self.workers.items()}


@dataclass
class Progress:
    """How far the consumer has come.

    Attributes:
        num_workers: Of the loader.
        epoch: How often it was iterated before.
        is_iterable: Whether the dataset is.
        base_seed, shared_seed, len_called: As torch's iterator has them.
        draws: The random generators as they were before the sampler was asked for anything; None: it draws nothing.
        generators: Those that belong to the loader.
        every: A snapshot is taken every so many batches.
        snapshot: The last one.
        sampler_epochs: Of samplers that have one.
        finished: Nothing is left of the epoch.
        sampler_at_end: The state of the sampler then, where it has one.
        drew_no_seed: It was begun with workers that were there already, and so without drawing a base seed.
    """

    num_workers: int
    epoch: int
    is_iterable: bool
    base_seed: int | None
    shared_seed: int | None
    len_called: int | None
    draws: dict[str, Any] | None
    generators: Generators
    every: int
    snapshot: Snapshot
    sampler_epochs: list[int] = field(default_factory=list)
    finished: bool = False
    sampler_at_end: dict[str, Any] | None = None
    drew_no_seed: bool = False

    def __post_init__(self) -> None:
        now = self.snapshot
        self.yielded, self.low, self.taken = now.step, now.low, set(now.taken)
        self.sampler_states = {now.low: now.sampler}  # after so many batches, where the sampler has a state
        self.workers, self.made = dict(now.workers), dict(now.made)
        self.ended, self.last_worker = set(now.ended), now.last_worker
        self._last = -1  # that was taken

    def took(self, task: Task, state: bytes | None) -> None:
        """The consumer gets this batch. Twice is once: an interrupt may have come in between."""
        if task.serial == self._last:
            return
        made, last_worker = self.made, self.last_worker
        if task.worker is not None:
            made, last_worker = {**made, task.worker: task.nth + 1}, task.worker
            if state is not None:
                self.workers[task.worker] = state
        low, taken = self.low, {*self.taken, task.serial}
        if self.is_iterable:  # whose batches have no numbers but those in each worker
            low, taken = low + 1, set()
        while low in taken:
            taken.remove(low)
            low += 1
        self.low, self.taken, self.made, self.last_worker = low, taken, made, last_worker  # at once
        self.yielded, self._last = self.yielded + 1, task.serial
        for passed in [number for number in self.sampler_states if number < low]:
            del self.sampler_states[passed]
        if self.every > 1 and self.yielded % self.every == 0:
            self.take_snapshot()

    def took_next(self, serial: int) -> None:
        """The same without workers, where batches come in their order."""
        if self.taken or self.sampler_states:
            self.took(Task(self.epoch, serial, None, 0, None, False, None), None)
        elif serial != self._last:
            self.low, self.yielded, self._last = self.low + 1, self.yielded + 1, serial  # at once

    def finish(self, sampler: Pass) -> None:
        self.sampler_at_end = sampler.state_dict() if sampler.has_state and not self.is_iterable else None
        self.finished = True

    def worker_began(self, worker: int, state: bytes) -> None:
        """The state of its dataset before its first batch of the epoch."""
        self.workers[worker] = self.snapshot.workers[worker] = state

    def worker_ended(self, worker: int, state: bytes | None) -> None:
        self.ended.add(worker)
        if state is not None:
            self.workers[worker] = state

    @functools.cached_property
    def _packed_draws(self) -> dict[str, Any] | None:
        """Once for an epoch: states may be wanted after each batch."""
        return None if self.draws is None else packed(self.draws)

    def anew(self) -> Progress:
        """The same epoch from its beginning."""
        return dataclasses.replace(self, snapshot=Snapshot())

    def current(self) -> Snapshot:
        return Snapshot(
            self.yielded,
            self.low,
            frozenset(self.taken),
            self.sampler_states.get(self.low, {}),
            dict(self.workers),
            dict(self.made),
            frozenset(self.ended),
            self.last_worker,
        )

    def take_snapshot(self) -> None:
        self.snapshot = self.current()

    def state_dict(self) -> dict[str, Any]:
        if self.every == 1:
            self.take_snapshot()
        now = self.snapshot
        main = {
            "_index_sampler_state": now.sampler.get("_index_sampler_state"),
            "_sampler_iter_state": now.sampler.get("_sampler_iter_state"),
            "_sampler_iter_yielded": now.low,
            "_IterableDataset_len_called": self.len_called,
            "_shared_seed": self.shared_seed,
        }
        own = {
            "version": 2,
            "epoch": self.epoch,
            "base_seed": self.base_seed,
            "draws": self._packed_draws,
            "drew_no_seed": self.drew_no_seed and self.draws is not None,
            "next_draws": packed(captured(self.generators)) if self.finished else None,
            "next_sampler": self.sampler_at_end,
            "sampler_epochs": self.sampler_epochs,
            "taken": sorted(now.taken),
            "made": dict(now.made),
            "ended": sorted(now.ended),
        }
        if not self.num_workers:
            return {**main, "_num_yielded": now.step, **self._of_worker(0), FINISHED: self.finished, OWN: own}
        return {
            "_snapshot": {
                "_snapshot_step": now.step,
                "_last_yielded_worker_id": now.last_worker % self.num_workers,
                "_main_snapshot": {"_num_workers": self.num_workers, "_base_seed": self.base_seed, **main},
                "_worker_snapshots": {
                    f"worker_{k}": {**self._of_worker(k), "worker_id": k} for k in range(self.num_workers)
                },
            },
            "_steps_since_snapshot": self.yielded - now.step,
            FINISHED: self.finished,
            OWN: own,
        }

    def _of_worker(self, number: int) -> dict[str, Any]:
        """Under the names that torchdata has for it."""
        of_fetcher = {"dataset_iter_state": None, "fetcher_ended": number in self.snapshot.ended}
        untold = {"fetcher_state": of_fetcher if self.is_iterable else None, "dataset_state": None}
        return untold | opened(self.snapshot.workers.get(number))
