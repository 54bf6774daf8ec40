"""What a worker does: open the dataset once, then for each batch seed, fetch, collate, and write into the slot."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from stoker.collate import collate
from stoker.memory import Encoder, Slot, Slots
from stoker.plan import Batch, Plan
from stoker.sources import Fetched, Indexed, IndexedSource
from stoker.workers.backend import Answer, Failed, Made, Request
from stoker.workers.randomness import Seeder

log = logging.getLogger("stoker")

_ALIGN = 64  # where the next batch of a run may begin


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know; it travels once. ``plan.length`` is the worker's own business."""

    source: IndexedSource
    plan: Plan
    collate: Callable[[list[Any]], Any] | None
    skip_errors: bool


class Worker:
    """One worker, wherever it lives. ``shared``: it lives in the consumer's process."""

    def __init__(self, number: int, job: Job, slots: Slots, seeded: Seeder, *, shared: bool) -> None:
        self.number = number
        self._job = job
        self._slots = slots
        self._seeded = seeded
        self._encoder = Encoder(shared=shared)
        self._opened: tuple[Indexed, Plan] | None = None
        self._refusal: Exception | None = None
        self._last_end = perf_counter_ns()

    def length(self) -> int:
        return self._open()[0].length

    def run(self, request: Request) -> Answer:
        """Makes every batch of the run; one that fails does not keep the others from being made."""
        idle = perf_counter_ns() - self._last_end
        slot = self._slots.get(request.slot, request.capacity)
        results: list[Made | Failed] = []
        end = 0
        for start in request.run.rounds:
            try:
                made = self._make(request, start, slot, -(-end // _ALIGN) * _ALIGN)
                end = made.packed.end
                results.append(made)
            except Exception as error:
                error.add_note(f"stoker: in worker {self.number}, epoch {request.run.epoch}, round {start}")
                results.append(Failed(error))
        self._last_end = perf_counter_ns()
        return Answer(self.number, request.ticket, request.slot, slot.capacity, idle, results)

    def _make(self, request: Request, start: int, slot: Slot, offset: int) -> Made:
        begin = perf_counter_ns()
        dataset, plan = self._open(request.length)
        batch = plan.batch(request.run.epoch, start)
        with self._seeded(plan.batch_seed(batch)):
            fetched = self._fetch(dataset, plan, batch)
            fetched_at = perf_counter_ns()
            packed = self._encoder.encode(self._collate(fetched), slot, offset)
        writing = perf_counter_ns() - fetched_at
        return Made(packed, len(fetched.samples), len(fetched.skipped), fetched_at - begin, writing)

    def _open(self, expected: int | None = None) -> tuple[Indexed, Plan]:
        """The dataset, made when first needed. One that can't be made is not tried again."""
        if self._refusal is not None:
            raise self._refusal
        if self._opened is None:
            try:
                dataset = self._job.source.open()
            except Exception as error:
                error.add_note("stoker: the dataset could not be made")
                self._refusal = error
                raise
            self._opened = dataset, dataclasses.replace(self._job.plan, length=dataset.length)
        if expected is not None and expected != self._opened[0].length:
            raise ValueError(
                f"the dataset has {self._opened[0].length} samples in worker {self.number} but {expected} in the plan: "
                f"it must have the same length wherever it is made"
            )
        return self._opened

    def _fetch(self, dataset: Indexed, plan: Plan, batch: Batch) -> Fetched:
        indices = plan.indices(batch)
        if not self._job.skip_errors:
            return dataset.fetch(indices)
        fetched = dataset.fetch_skipping(indices)
        for index, error in fetched.skipped:
            # As text: a log record that held the error would hold its frames, and with them a slot.
            log.warning("skipped sample %d: %s: %s", index, type(error).__name__, str(error))
        return fetched

    def _collate(self, fetched: Fetched) -> Any:
        samples = fetched.samples
        if not len(samples):
            return None  # all were skipped; nobody will see this
        if self._job.plan.batch_size is None:
            return samples[0]
        try:
            if self._job.collate is None:
                return collate(samples, fetched.indices)
            return self._job.collate(list(samples))
        except Exception as error:
            first, last = fetched.indices[0], fetched.indices[-1]
            error.add_note(f"stoker: collating samples {first} ... {last} ({len(samples)} in all) raised it")
            raise
