"""What a worker does: open the dataset once, then for each batch seed, fetch, collate, and write into the slot."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns, thread_time_ns
from typing import Any

from stoker.collation import collate
from stoker.errors import add_note
from stoker.plan import Batch, Mixture, Numbering, Plan, SentBatches, again
from stoker.sources import (
    WORTH_A_LOOK_NS,
    Fetched,
    Indexed,
    IndexedSource,
    IsInterrupt,
    ItemSource,
    Retry,
    SampleError,
    Work,
)
from stoker.sources.indexed import never_interrupted
from stoker.stores import OpenStore, Store
from stoker.workers.backend import Answer, Failed, Made, Request, Skipped, Timing
from stoker.workers.failure import error_line, ordinary, story
from stoker.workers.identity import acting_as
from stoker.workers.progress import MAKING_THE_DATASET, Place, at_batch, waited
from stoker.workers.randomness import Generators
from stoker.workers.replacing import Replacing
from stoker.workers.retrying import Retrying
from stoker.workers.transport import Writer

_BATCHES = 16  # of which what a sample takes is averaged


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know; it travels once. ``plan.length`` is the worker's own business."""

    source: IndexedSource | ItemSource
    plan: Plan | Numbering
    collate: Callable[[list[Any]], Any] | None
    skip_errors: bool
    open_store: OpenStore | None = None
    init: Callable[[], object] | None = None  # called in each worker before all else
    may_change: bool = True  # between epochs, so that it is looked at where one begins
    replaces: bool = False  # samples that fail, with others, where errors are skipped
    retry: Retry | None = None  # of samples, items and parts of files
    seeds: bool = True  # for each unit anew; else the random generators are nobody's business but the user's
    pack: Callable[[Sequence[Any], Sequence[int]], Any] | None = None  # in place of collating: gets the indices, too


class Worker:
    """One worker, wherever it lives.

    Args:
        number: Its own.
        job: What to do.
        writer: Of results.
        store: A descriptor of the file that the job's store is in, if it has one of its own.
        generators: That its code draws from.
        place: Where to note how far it is.
        is_interrupt: Whether an exception is none of the user's code but comes from outside: Ctrl-C and other signals,
            in the consumer's own thread.
        cpu_clock: Nanoseconds of processor time so far: of its thread, or of all threads if the process is its own.
    """

    def __init__(
        self,
        number: int,
        job: Job,
        writer: Writer,
        store: int,
        generators: Generators,
        place: Place,
        *,
        is_interrupt: IsInterrupt = never_interrupted,
        cpu_clock: Callable[[], int] = thread_time_ns,
    ) -> None:
        self.number = number
        self.place = place
        self._job = job
        self._writer = writer
        self._generators = generators
        self._is_interrupt = is_interrupt
        self._opened: tuple[Indexed | Work, Plan | Numbering] | None = None
        self._store_file = store
        self._store: Store | None = None
        self._notes: list[str] = []
        self._refusal: Exception | None = None
        self._free_at = 0  # when it was ready for the next run; 0 within one
        self._cpu_clock = cpu_clock
        self._retrying: Retrying | None = None
        if job.retry is not None:
            self._retrying = Retrying(job.retry, generators, is_interrupt, job.plan.seed, number)
        self._calls = 0  # of dataset[i], for the batch that is being made
        self._sample_ns = 0.0  # that a sample took, on average of the last batches
        self._other: Plan | None = None  # with the mixture that came with the last run, if that was another

    def length(self) -> int:
        return self.open()[0].length

    def open(self, expected: int | None = None) -> tuple[Indexed | Work, Plan | Numbering]:
        """The dataset, made when first needed. One that can't be made is not tried again."""
        if self._refusal is not None:
            raise self._refusal
        if self._opened is None:
            self.place[0] = MAKING_THE_DATASET
            what = "init raised it, before the dataset was made"
            try:
                with acting_as(self.number):
                    if self._job.init is not None:
                        self._job.init()
                    what = "the dataset could not be made"
                    dataset = self._job.source.open(None if self._retrying is None else self._retrying.call)
            except BaseException as error:
                if self._is_interrupt(error):
                    raise
                add_note(error, f"stoker: {what}")
                self._refusal = ordinary(error)
                raise self._refusal from self._refusal.__cause__
            plan = self._job.plan.of_length(dataset.length)
            if self._job.open_store is not None and isinstance(plan, Plan) and dataset.length:
                copies = self._job.collate is not None  # which may write into its samples
                self._store = self._job.open_store(plan, self._store_file, copies=copies, tell=self._notes.append)
            self._opened = dataset, plan
            self._free_at = perf_counter_ns()
        if expected is not None and expected != self._opened[0].length:
            raise ValueError(
                f"the dataset has {self._opened[0].length} samples in worker {self.number} but {expected} in the plan: "
                f"it must have the same length wherever it is made"
            )
        return self._opened

    def abandon(self) -> None:
        """From another thread: nobody waits for this worker any more."""
        self.hurry()
        if self._store is not None:
            self._store.abandon()

    def hurry(self) -> None:
        """From another thread: it is about to be closed, and is not to wait before it tries something again."""
        if self._retrying is not None:
            self._retrying.end()

    def close(self) -> None:
        """Closes what it has opened. For those who share their process with others."""
        if self._store is not None:
            self._store.close()

    def forget_dataset(self) -> None:
        """At the end, in the thread that has made it: what the dataset holds may be of use, and end, only there."""
        self._opened = None

    def run(self, request: Request) -> Answer:
        """Makes every batch of the run; one that fails does not keep the others from being made."""
        with acting_as(self.number):
            return self._run(request)

    def _run(self, request: Request) -> Answer:
        self._writer.begin(request.slot)
        cpu = self._cpu_clock()
        results: list[Made | Failed] = []
        epoch = request.run.epoch if request.run.epoch >= 0 else again(request.run.epoch)
        for place, start in enumerate(request.run.positions, 1):
            try:
                dataset, plan = self.open(request.length)
                dataset, told = dataset.on(request.item), self._by(plan, request.item)
                self.place[0] = at_batch(request.ticket, place)
                made = self._make(dataset, told, told.batch(epoch, start), request.left_out)
                self._writer.keep(made.packed)
                results.append(made)
            except BaseException as error:
                if self._is_interrupt(error):
                    self.close()  # it may have come while a store was locked
                    raise
                what = self._job.source.unit_name(epoch, start // self._job.plan.stride)
                add_note(error, f"stoker: in worker {self.number}, {what}")
                results.append(Failed(error))
        last = results[-1] if results else None
        if isinstance(last, Made):
            results[-1] = last._replace(cpu=self._cpu_clock() - cpu)
        self._free_at = perf_counter_ns()
        try:
            return Answer(self.number, request.ticket, request.slot, results)
        finally:
            del results, last  # an error in it holds this frame

    def _by(self, plan: Plan | Numbering, item: Any) -> Plan | Numbering | SentBatches:
        """What a run goes by: the plan, or what has come with the run.

        That are its indices where code of the user's gives the order; and a mixture whose weights were set since the
        workers got the plan.
        """
        if isinstance(item, SentBatches):
            return item
        if not isinstance(item, Mixture) or not isinstance(plan, Plan):
            return plan
        if self._other is None or self._other.order != item:  # the same object keeps what it has worked out
            self._other = replace(plan, order=item)
        return self._other

    def _make(
        self, dataset: Indexed | Work, plan: Plan | Numbering | SentBatches, batch: Batch, left_out: Sequence[int]
    ) -> Made:
        began = perf_counter_ns()
        free, self._free_at = self._free_at or began, 0
        indices = _without(left_out, plan.indices(batch))
        store, generators = self._store, self._generators
        with generators.lent() if self._job.seeds else contextlib.nullcontext():
            if store is None or not (indices or self._job.replaces):  # of which all were left out
                if self._job.seeds:
                    generators.seed(plan.batch_seed(batch) if dataset.seed is None else dataset.seed)
                fetched, self._calls = self._fetch(dataset, plan, batch, left_out, indices), len(indices)
                fetched_at = perf_counter_ns()
                self._sample_ns += ((fetched_at - began) / max(len(indices), 1) - self._sample_ns) / _BATCHES
                dataset.is_timed = self._sample_ns > WORTH_A_LOOK_NS  # from the next batch on
                packed = self._writer.write(self._collate(fetched))
            else:
                keys, is_sound = _without(left_out, store.keys(batch, plan.indices(batch))), False
                self._calls = 0
                while not is_sound:
                    fetched = self._fetch_kept(store, dataset, plan, batch, left_out, keys, indices)
                    fetched_at = perf_counter_ns()
                    generators.seed(plan.batch_seed(batch))
                    packed = self._writer.write(self._collate(fetched))
                    is_sound = store.finish(batch.epoch, keys)
        written = perf_counter_ns()
        timing = Timing(free, began, fetched_at, written, written)
        skipped = tuple(map(_told, fetched.skipped)) if fetched.skipped else ()
        retries = 0 if self._retrying is None else self._retrying.counted()
        slow, dataset.slow = dataset.slow, None
        return Made(packed, len(fetched.samples), skipped, self._noted(), timing, self._calls, 0, retries, slow)

    def _noted(self) -> tuple[str, ...]:
        if not self._notes:
            return ()
        notes = tuple(self._notes)
        self._notes.clear()
        return notes

    def _fetch_kept(
        self,
        store: Store,
        dataset: Indexed | Work,
        plan: Plan | Numbering | SentBatches,
        batch: Batch,
        left_out: Sequence[int],
        keys: Sequence[int],
        indices: Sequence[int],
    ) -> Fetched:
        """From the store. Each sample that is made has a seed of its own, and belongs to no batch."""

        def make(index: int) -> Any:
            self._calls += 1
            self._generators.seed(store.seed_of(batch.epoch, index))
            return dataset.sample(index)

        if not self._job.replaces:
            return Fetched.of(self._each_kept(store, batch.epoch, keys, indices, make), indices)
        of_alive = functools.partial(self._each_kept, store, batch.epoch, keys, make=make)
        return self._replacing(dataset, plan, batch).fetch(left_out, of_alive, make)

    def _each_kept(
        self, store: Store, epoch: int, keys: Sequence[int], indices: Sequence[int], make: Callable[[int], Any]
    ) -> list[Any]:
        """For each key its sample, or a ``SampleError`` where these are skipped."""
        index_of = dict(zip(keys, indices, strict=True))

        def make_key(key: int) -> Any:
            try:
                return make(index_of[key])
            except BaseException as error:
                if not self._job.skip_errors or self._is_interrupt(error):
                    raise
                return SampleError(index_of[key], error)

        samples, failed = store.fetch(epoch, keys, make_key, self._tick)
        if not failed:
            return self._uses(samples, keys)
        good = iter(self._uses(samples, [key for key in keys if key in samples]))
        return [next(good) if key in samples else failed[key] for key in keys]

    def _replacing(self, dataset: Indexed | Work, plan: Plan | Numbering | SentBatches, batch: Batch) -> Replacing:
        assert isinstance(dataset, Indexed)
        assert not isinstance(plan, Numbering)
        return Replacing(dataset, plan, batch, self._is_interrupt)

    def _uses(self, samples: dict[int, Any], keys: Sequence[int]) -> list[Any]:
        """One for each key; where a sample comes twice, and the user's collate may write into it, also as a copy."""
        if self._job.collate is None or len(samples) == len(keys):
            return [samples[key] for key in keys]
        first = dict(reversed([(key, place) for place, key in enumerate(keys)]))
        return [samples[key] if first[key] == place else copy.deepcopy(samples[key]) for place, key in enumerate(keys)]

    def _tick(self) -> None:
        self.place[0] = waited(self.place[0])

    def _fetch(
        self,
        dataset: Indexed | Work,
        plan: Plan | Numbering | SentBatches,
        batch: Batch,
        left_out: Sequence[int],
        indices: Sequence[int],
    ) -> Fetched:
        if self._job.replaces and isinstance(dataset, Indexed):
            each = functools.partial(dataset.each, is_interrupt=self._is_interrupt)
            return self._replacing(dataset, plan, batch).fetch(left_out, each, dataset.sample)
        if not indices:  # all were left out
            return Fetched([], [], [])
        if self._job.skip_errors:
            return dataset.fetch_skipping(indices, self._is_interrupt)
        return dataset.fetch(indices)

    def _collate(self, fetched: Fetched) -> Any:
        samples = fetched.samples
        if not len(samples):
            return None  # all were skipped; nobody will see this
        if self._job.plan.batch_size is None:
            return samples[0]
        try:
            if self._job.pack is not None:
                return self._job.pack(samples, fetched.indices)
            if self._job.collate is None:
                return collate(samples, fetched.indices)
            return self._job.collate(list(samples))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            first, last = fetched.indices[0], fetched.indices[-1]
            add_note(error, f"stoker: collating samples {first} ... {last} ({len(samples)} in all) raised it")
            raise


def _without(places: Sequence[int], values: Sequence[int]) -> Sequence[int]:
    """Those at other places. One that is to be replaced is given as ``~place``."""
    if not places:
        return values
    return [value for place, value in enumerate(values) if place not in places and ~place not in places]


def _told(skipped: SampleError) -> Skipped:
    """As text: the error itself would hold its frames, and with them a slot, and could not travel."""
    index, error = skipped
    return Skipped(index, error_line(error), story(error))
