"""Figures of a run, and who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns

from stoker.workers import Made

_SMALL_SHARE = 0.05  # of the time: less waiting than this is not worth a remedy


@dataclass(frozen=True)
class WorkerStats:
    """What one worker has done, as far as its batches were delivered. Times are in seconds, as in ``Stats``."""

    batches: int = 0
    samples: int = 0
    fetching: float = 0.0
    writing: float = 0.0
    idling: float = 0.0


@dataclass(frozen=True)
class Stats:
    """What a loader has done since it was started. Times are in seconds.

    Attributes:
        batches: Batches delivered.
        samples: Samples in them.
        skipped: Samples left out by ``on_error="skip"`` or ``"quarantine"``.
        nbytes: Bytes of arrays delivered.
        workers: Number of workers; 0 inline.
        elapsed: From the first request for a batch to the last delivery.
        waited: Part of it in which the consumer was blocked, waiting for a batch.
        fetching: Spent in ``dataset[i]``, over all workers.
        writing: Spent collating and writing into slots, over all workers.
        idling: Spent waiting for a request, over all workers.
        moving: Spent in ``to`` and on the way to the device; ahead of the consumer where there is a device.
        by_worker: The same, worker by worker.
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

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.elapsed if self.elapsed else 0.0

    @property
    def diagnosis(self) -> str:
        """One sentence: who waited for whom, and what would help."""
        if not self.batches or not self.elapsed:
            return "Nothing was delivered yet."
        share = self.waited / self.elapsed
        if not self.workers:
            return f"There are no workers: the consumer made its batches itself, {share:.0%} of the time."
        if share < _SMALL_SHARE:
            return (
                f"The consumer was kept fed: it waited {share:.0%} of the time "
                f"and the workers idled {self._idle_share:.0%} of theirs."
            )
        busy, remedy = self._bottleneck
        return f"The consumer waited for data {share:.0%} of the time; workers spent {busy}: {remedy}."

    @property
    def _idle_share(self) -> float:
        return self.idling / max(self.idling + self.fetching + self.writing, 1e-9)

    @property
    def _bottleneck(self) -> tuple[str, str]:
        busy = max(self.fetching + self.writing, 1e-9)
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
        self._began = 0
        self._ended = 0
        self._skipped = self._nbytes = self._waited = self._moving = 0
        # For each worker: batches, samples, and nanoseconds of fetching, writing, idling.
        self._by_worker = [[0] * 5 for _ in range(max(workers, 1))]

    def begin(self) -> None:
        """The consumer asks for its first batch."""
        if not self._began:
            self._began = perf_counter_ns()

    def delivered(self, made: Made, worker: int, idle: int, waited: int, moving: int) -> None:
        packed, samples, _, _, fetching, writing = made
        own = self._by_worker[worker]
        own[0] += 1
        own[1] += samples
        own[2] += fetching
        own[3] += writing
        own[4] += idle
        self._nbytes += packed.nbytes
        self._waited += waited
        self._moving += moving
        self._ended = perf_counter_ns()

    def skipped(self, count: int) -> None:
        self._skipped += count

    def stats(self) -> Stats:
        batches, samples, fetching, writing, idling = (sum(column) for column in zip(*self._by_worker, strict=True))
        return Stats(
            batches=batches,
            samples=samples,
            skipped=self._skipped,
            nbytes=self._nbytes,
            workers=self._workers,
            elapsed=max(self._ended - self._began, 0) / 1e9,
            waited=self._waited / 1e9,
            fetching=fetching / 1e9,
            writing=writing / 1e9,
            idling=idling / 1e9,
            moving=self._moving / 1e9,
            by_worker=tuple(
                WorkerStats(batches, samples, *(spent / 1e9 for spent in times))
                for batches, samples, *times in self._by_worker
            ),
        )
