"""What a worker does: open the dataset once, then for each batch seed, fetch, collate, and write into the slot."""

from __future__ import annotations

import copy
import dataclasses
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from stoker.collate import collate
from stoker.memory import Encoder, Slot, Slots
from stoker.plan import Batch, Plan
from stoker.sources import Fetched, Indexed, IndexedSource, ItemSource, SampleError, Work
from stoker.stores import OpenStore, Store
from stoker.workers.backend import Answer, Failed, Made, Request, Skipped
from stoker.workers.failure import error_line
from stoker.workers.progress import MAKING_THE_DATASET, Place, at_batch, waited
from stoker.workers.randomness import Generators

_ALIGN = 64  # where the next batch of a run may begin


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know; it travels once. ``plan.length`` is the worker's own business."""

    source: IndexedSource | ItemSource
    plan: Plan
    collate: Callable[[list[Any]], Any] | None
    skip_errors: bool
    open_store: OpenStore | None = None


class Worker:
    """One worker, wherever it lives.

    Args:
        number: Its own.
        job: What to do.
        slots: Where to write.
        store: A descriptor of the file that the job's store is in, if it has one of its own.
        generators: That its code draws from.
        place: Where to note how far it is.
        shared: It lives in the consumer's process.
    """

    def __init__(
        self, number: int, job: Job, slots: Slots, store: int, generators: Generators, place: Place, *, shared: bool
    ) -> None:
        self.number = number
        self.place = place
        self._job = job
        self._slots = slots
        self._generators = generators
        self._encoder = Encoder(shared=shared)
        self._opened: tuple[Indexed | Work, Plan] | None = None
        self._store_file = store
        self._store: Store | None = None
        self._notes: list[str] = []
        self._refusal: Exception | None = None
        self._last_end = perf_counter_ns()

    def length(self) -> int:
        return self.open()[0].length

    def open(self, expected: int | None = None) -> tuple[Indexed | Work, Plan]:
        """The dataset, made when first needed. One that can't be made is not tried again."""
        if self._refusal is not None:
            raise self._refusal
        if self._opened is None:
            self.place[0] = MAKING_THE_DATASET
            try:
                dataset = self._job.source.open()
            except Exception as error:
                error.add_note("stoker: the dataset could not be made")
                self._refusal = error
                raise
            plan = dataclasses.replace(self._job.plan, length=dataset.length)
            if self._job.open_store is not None and dataset.length:
                copies = self._job.collate is not None  # which may write into its samples
                self._store = self._job.open_store(plan, self._store_file, copies=copies, tell=self._notes.append)
            self._opened = dataset, plan
        if expected is not None and expected != self._opened[0].length:
            raise ValueError(
                f"the dataset has {self._opened[0].length} samples in worker {self.number} but {expected} in the plan: "
                f"it must have the same length wherever it is made"
            )
        return self._opened

    def abandon(self) -> None:
        """From another thread: nobody waits for this worker any more."""
        if self._store is not None:
            self._store.abandon()

    def close(self) -> None:
        """Closes what it has opened. For those who share their process with others."""
        if self._store is not None:
            self._store.close()

    def run(self, request: Request) -> Answer:
        """Makes every batch of the run; one that fails does not keep the others from being made."""
        idle = perf_counter_ns() - self._last_end
        slot = self._slots.get(request.slot, request.capacity)
        results: list[Made | Failed] = []
        end = 0
        for nth, start in enumerate(request.run.rounds, 1):
            try:
                dataset, plan = self.open(request.length)
                if isinstance(dataset, Work):
                    dataset = dataset.on(request.item)
                self.place[0] = at_batch(request.ticket, nth)
                batch = plan.batch(request.run.epoch, start)
                made = self._make(dataset, plan, batch, request.left_out, slot, -(-end // _ALIGN) * _ALIGN)
                end = made.packed.end
                results.append(made)
            except KeyboardInterrupt:  # inline, it is the consumer's own, and may have come while a store was locked
                self.close()
                raise
            except BaseException as error:
                error.add_note(f"stoker: in worker {self.number}, epoch {request.run.epoch}, round {start}")
                results.append(Failed(error))
        self._last_end = perf_counter_ns()
        return Answer(self.number, request.ticket, request.slot, slot.capacity, idle, results)

    def _make(
        self, dataset: Indexed | Work, plan: Plan, batch: Batch, left_out: Sequence[int], slot: Slot, offset: int
    ) -> Made:
        begin = perf_counter_ns()
        indices = _without(left_out, plan.indices(batch))
        store, generators = self._store, self._generators
        with generators.lent():
            if store is None or not indices:  # of which all were left out
                own_seed = dataset.seed if isinstance(dataset, Work) else None
                generators.seed(plan.batch_seed(batch) if own_seed is None else own_seed)
                fetched = self._fetch(dataset, indices)
                fetched_at = perf_counter_ns()
                packed = self._encoder.encode(self._collate(fetched), slot, offset)
            else:
                keys, is_sound = _without(left_out, store.keys(batch, plan.indices(batch))), False
                while not is_sound:
                    fetched = self._fetch_kept(store, dataset, batch.epoch, keys, indices)
                    fetched_at = perf_counter_ns()
                    generators.seed(plan.batch_seed(batch))
                    packed = self._encoder.encode(self._collate(fetched), slot, offset)
                    is_sound = store.finish(batch.epoch, keys)
        writing = perf_counter_ns() - fetched_at
        skipped = tuple(map(_told, fetched.skipped)) if fetched.skipped else ()
        return Made(packed, len(fetched.samples), skipped, self._noted(), fetched_at - begin, writing)

    def _noted(self) -> tuple[str, ...]:
        if not self._notes:
            return ()
        notes = tuple(self._notes)
        self._notes.clear()
        return notes

    def _fetch_kept(
        self, store: Store, dataset: Indexed | Work, epoch: int, keys: Sequence[int], indices: Sequence[int]
    ) -> Fetched:
        """From the store. Each sample that is made has a seed of its own, and belongs to no batch."""
        index_of = dict(zip(keys, indices, strict=True))

        def make(key: int) -> Any:
            index = index_of[key]
            self._generators.seed(store.seed_of(epoch, index))
            try:
                return dataset.sample(index)
            except (Exception, SystemExit) as error:
                if not self._job.skip_errors:
                    raise
                return SampleError(index, error)

        samples, failed = store.fetch(epoch, keys, make, self._tick)
        if not failed:
            return Fetched(self._uses(samples, keys), indices, [])
        good = [key for key in keys if key in samples]
        skipped = [failed[key] for key in keys if key in failed]
        return Fetched(self._uses(samples, good), [index_of[key] for key in good], skipped)

    def _uses(self, samples: dict[int, Any], keys: Sequence[int]) -> list[Any]:
        """One for each key; where a sample comes twice, and the user's collate may write into it, also as a copy."""
        if self._job.collate is None or len(samples) == len(keys):
            return [samples[key] for key in keys]
        first = dict(reversed([(key, place) for place, key in enumerate(keys)]))
        return [samples[key] if first[key] == place else copy.deepcopy(samples[key]) for place, key in enumerate(keys)]

    def _tick(self) -> None:
        self.place[0] = waited(self.place[0])

    def _fetch(self, dataset: Indexed | Work, indices: Sequence[int]) -> Fetched:
        if not indices:  # all were left out
            return Fetched([], [], [])
        return dataset.fetch_skipping(indices) if self._job.skip_errors else dataset.fetch(indices)

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


def _without(places: Sequence[int], values: Sequence[int]) -> Sequence[int]:
    return [value for place, value in enumerate(values) if place not in places] if places else values


def _told(skipped: SampleError) -> Skipped:
    """As text: the error itself would hold its frames, and with them a slot, and could not travel."""
    index, error = skipped
    return Skipped(index, error_line(error), "".join(traceback.format_exception(error)))
