"""Where the consumer is in an epoch: all that a state holds. It knows no worker, so it outlives an iterator.

A state has the form of torchdata's ``StatefulDataLoader``, one for ``num_workers=0`` and one for more, and beside it,
under ``_stoker``, what makes more of it possible: other numbers of workers, and batches that came out of order.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any

from stoker.torch.draws import Generators, current, packed
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
        workers: State of each worker's dataset, where it has one.
        made: Batches that the consumer had of each worker.
        ended: Workers whose datasets had given all.
        last_worker: That made the last batch.
    """

    step: int = 0
    low: int = 0
    taken: frozenset[int] = frozenset()
    sampler: dict[str, Any] = field(default_factory=dict)
    workers: dict[int, Any] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)
    ended: frozenset[int] = frozenset()
    last_worker: int = -1


@dataclass
class Progress:
    """How far the consumer has come.

    Attributes:
        num_workers: Of the loader.
        epoch: How often it was iterated before.
        base_seed, shared_seed, len_called: As torch's iterator has them.
        draws: The random generators as they were before the sampler was asked for anything; None: it draws nothing.
        generators: Those that belong to the loader.
        every: A snapshot is taken every so many batches.
        snapshot: The last one.
        sampler_epochs: Of samplers that have one.
        finished: Nothing is left of the epoch.
        drew_no_seed: It was begun with workers that were there already, and so without drawing a base seed.
    """

    num_workers: int
    epoch: int
    base_seed: int | None
    shared_seed: int | None
    len_called: int | None
    draws: dict[str, Any] | None
    generators: Generators
    every: int
    snapshot: Snapshot
    sampler_epochs: list[int] = field(default_factory=list)
    finished: bool = False
    drew_no_seed: bool = False

    def __post_init__(self) -> None:
        now = self.snapshot
        self.yielded, self.low, self.taken = now.step, now.low, set(now.taken)
        self.sampler_states = {now.low: now.sampler}  # after so many batches, where the sampler has a state
        self.workers, self.made = dict(now.workers), dict(now.made)
        self.ended, self.last_worker = set(now.ended), now.last_worker
        self._last = -1  # that was taken

    def took(self, task: Task, state: Any) -> None:
        """The consumer gets this batch. Twice is once: an interrupt may have come in between."""
        if task.serial == self._last:
            return
        if task.worker is not None:
            self.last_worker = task.worker
            self.made[task.worker] = self.made.get(task.worker, 0) + 1
            if state is not None:
                self.workers[task.worker] = state
        self.taken.add(task.serial)
        while self.low in self.taken:
            self.taken.remove(self.low)
            self.sampler_states.pop(self.low, None)
            self.low += 1
        self.yielded, self._last = self.yielded + 1, task.serial
        if self.every > 1 and self.yielded % self.every == 0:
            self.take_snapshot()

    def worker_ended(self, worker: int, state: Any) -> None:
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

    def take_snapshot(self) -> None:
        self.snapshot = Snapshot(
            self.yielded,
            self.low,
            frozenset(self.taken),
            self.sampler_states.get(self.low, {}),
            dict(self.workers),
            dict(self.made),
            frozenset(self.ended),
            self.last_worker,
        )

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
            "version": 1,
            "epoch": self.epoch,
            "base_seed": self.base_seed,
            "draws": self._packed_draws,
            "drew_no_seed": self.drew_no_seed and self.draws is not None,
            "generators": current(self.generators) if self.finished else None,
            "sampler_epochs": self.sampler_epochs,
            "taken": sorted(now.taken),
            "made": dict(now.made),
            "ended": sorted(now.ended),
        }
        if not self.num_workers:
            alone = now.workers.get(0) or {"fetcher_state": None, "dataset_state": None}
            return {**main, "_num_yielded": now.step, **alone, FINISHED: self.finished, OWN: own}
        return {
            "_snapshot": {
                "_snapshot_step": now.step,
                "_last_yielded_worker_id": now.last_worker % self.num_workers,
                "_main_snapshot": {"_num_workers": self.num_workers, "_base_seed": self.base_seed, **main},
                "_worker_snapshots": {f"worker_{k}": self._of_worker(k) for k in range(self.num_workers)},
            },
            "_steps_since_snapshot": self.yielded - now.step,
            FINISHED: self.finished,
            OWN: own,
        }

    def _of_worker(self, number: int) -> dict[str, Any]:
        found = self.snapshot.workers.get(number) or {"fetcher_state": None, "dataset_state": None}
        return {**found, "worker_id": number}
