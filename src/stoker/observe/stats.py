"""Figures of a run, and who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns

from stoker.engine import Usage
from stoker.workers import Made

_SMALL_SHARE = 0.05  # of the time: less waiting than this is not worth a remedy
_MOST = 0.5  # of the time: what took more than this is what to talk about
_NOTHING = Usage()  # is under way: it has not been started, or was closed
_BRIEF_S = 0.5  # too short a time, beside the start-up, to tell who waits for whom


@dataclass(frozen=True)
class WorkerStats:
    """What one worker has done, as far as its batches were delivered. Times are in seconds, as in ``Stats``."""

    batches: int = 0
    samples: int = 0
    fetching: float = 0.0
    writing: float = 0.0
    idling: float = 0.0


@dataclass(frozen=True, repr=False)
class Stats:
    """What a loader has done since it was started. Times are in seconds.

    Attributes:
        batches: Batches delivered.
        samples: Samples in them.
        skipped: Samples left out by ``on_error="skip"`` or ``"quarantine"``.
        nbytes: Bytes of arrays delivered.
        workers: Number of workers; 0 inline.
        elapsed: From the first request for a batch to the last delivery.
        starting: Part of it until workers were up and the first batch was begun: processes, imports, the dataset.
        waited: Part of it in which the consumer was blocked, waiting for a batch; includes ``starting``.
        fetching: Spent in ``dataset[i]``, over all workers.
        writing: Spent collating and writing into slots, over all workers.
        idling: Spent waiting for a request, over all workers.
        moving: Spent in ``to`` and on the way to the device; ahead of the consumer where there is a device.
        by_worker: The same, worker by worker.
        units_under_way: Units of work (batches, a few small ones together, or items) that workers have or have done,
            and that were not delivered yet; at this moment, as all that follows.
        workers_busy: Workers that have something to do.
        slots: Blocks of shared memory, each of which holds the batches of one unit; free ones included.
        slots_held: Those that the consumer holds, with a batch or a part of it.
        deaths: Workers that died and were replaced, since they were started.
    """

    batches: int
    samples: int
    skipped: int
    nbytes: int
    workers: int
    elapsed: float
    waited: float
    fetching: float
    writing: float
    idling: float
    moving: float
    by_worker: tuple[WorkerStats, ...]
    starting: float = 0.0
    units_under_way: int = 0
    workers_busy: int = 0
    slots: int = 0
    slots_held: int = 0
    deaths: int = 0

    def __repr__(self) -> str:
        times = f"{self.elapsed:.3g} s, of which starting {self.starting:.3g} s and waited {self.waited:.3g} s"
        left_out = f"{self.skipped} skipped, " if self.skipped else ""
        return (
            f"Stats({self.batches} batches, {self.samples} samples, {left_out}{self.nbytes} bytes, "
            f"{self.workers} workers, {times})"
        )

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.elapsed if self.elapsed else 0.0

    @property
    def diagnosis(self) -> str:
        """One sentence: who waited for whom, and what would help."""
        if not self.batches or not self.elapsed:
            return "Nothing was delivered yet."
        if not self.workers:
            share = self.waited / self.elapsed
            return f"There are no workers: the consumer made its batches itself, {share:.0%} of the time."
        if self.starting > _MOST * self.elapsed and self.elapsed - self.starting < _BRIEF_S:
            return (
                f"Most of the time was start-up, {self.starting:.2g} of {self.elapsed:.2g} s: workers, imports and "
                f"the dataset. A longer run tells who waits for whom; warm_up() starts the workers earlier."
            )
        return f"{self._of_the_rest}{self._start_up}"

    @property
    def _of_the_rest(self) -> str:
        """Who waited for whom once workers were up."""
        share = max(self.waited - self.starting, 0.0) / (self.elapsed - self.starting)
        if share < _SMALL_SHARE:
            return (
                f"The consumer was kept fed: it waited {share:.0%} of the time "
                f"and the workers idled {self._idle_share:.0%} of theirs."
            )
        busy, remedy = self._bottleneck
        return f"The consumer waited for data {share:.0%} of the time; workers spent {busy}: {remedy}."

    @property
    def _start_up(self) -> str:
        return f" Start-up took {self.starting:.2g} s more." if self.starting > _SMALL_SHARE * self.elapsed else ""

    @property
    def _idle_share(self) -> float:
        return self.idling / max(self.idling + self.fetching + self.writing, 1e-9)

    @property
    def _bottleneck(self) -> tuple[str, str]:
        busy = max(self.fetching + self.writing, 1e-9)
        if self._idle_share > _MOST:
            return f"{self._idle_share:.0%} of theirs idling", "bigger batches, or a bigger prefetch, would help"
        if self.fetching >= self.writing:
            return (
                f"{self.fetching / busy:.0%} of their work in dataset[i]",
                "more workers or a cheaper dataset would help",
            )
        return (
            f"{self.writing / busy:.0%} of their work in collation",
            "more workers or smaller samples would help",
        )


class Meter:
    """Adds up what each delivery reports."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.began = 0  # when the consumer asked for its first batch; 0: it has not
        self._ended = 0
        self._batches = self._samples = 0
        self._skipped = self._nbytes = self._waited = self._moving = self._starting = 0
        # For each worker: batches, samples, and nanoseconds of fetching, writing, idling.
        self._by_worker = [[0] * 5 for _ in range(max(workers, 1))]

    def begin(self) -> None:
        """The consumer asks for its first batch."""
        if not self.began:
            self.began = perf_counter_ns()

    def handed(self, samples: int) -> None:
        """A batch of so many samples goes to the consumer."""
        self._batches += 1
        self._samples += samples
        self._ended = perf_counter_ns()

    def moved(self, nanoseconds: int) -> None:
        """So long it took a batch to get through the bridge, if no worker's work is told with it."""
        self._moving += nanoseconds

    def delivered(self, made: Made, worker: int, waited: int, moving: int, handed: int = 0) -> None:
        """A worker has made that: a batch, or what many are cut of. ``handed``: samples of it that go to the consumer
        at once, in a batch."""
        free, began, fetched, written = made.timing
        own = self._by_worker[worker]
        if not self._ended:  # the first batch: what it took beyond its own making was start-up
            self._starting = max(waited - (written - began) - moving, 0) if self._workers else 0
        own[0] += 1
        own[1] += made.samples
        own[2] += fetched - began
        own[3] += written - fetched
        own[4] += began - free
        if handed:
            self._batches += 1
            self._samples += handed
        self._nbytes += made.packed.nbytes
        self._waited += waited
        self._moving += moving
        self._ended = perf_counter_ns()

    def skipped(self, count: int) -> None:
        self._skipped += count

    def stats(self, usage: Usage = _NOTHING) -> Stats:
        _, _, fetching, writing, idling = (sum(column) for column in zip(*self._by_worker, strict=True))
        return Stats(
            batches=self._batches,
            samples=self._samples,
            skipped=self._skipped,
            nbytes=self._nbytes,
            workers=self._workers,
            elapsed=max(self._ended - self.began, 0) / 1e9,
            starting=self._starting / 1e9,
            waited=self._waited / 1e9,
            fetching=fetching / 1e9,
            writing=writing / 1e9,
            idling=idling / 1e9,
            moving=self._moving / 1e9,
            by_worker=tuple(
                WorkerStats(batches, samples, *(spent / 1e9 for spent in times))
                for batches, samples, *times in self._by_worker
            ),
            units_under_way=usage.runs,
            workers_busy=usage.workers,
            slots=usage.slots,
            slots_held=usage.held,
            deaths=usage.deaths,
        )
