"""Figures of a run, and who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns

from stoker.workers import Made

_SMALL_SHARE = 0.05  # of the time: less waiting than this is not worth a remedy


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
        self._batches = self._samples = self._skipped = self._nbytes = 0
        self._waited = self._fetching = self._writing = self._idling = 0

    def begin(self) -> None:
        """The consumer asks for its first batch."""
        if not self._began:
            self._began = perf_counter_ns()

    def delivered(self, made: Made, idle: int, waited: int) -> None:
        packed, samples, _, fetching, writing = made
        self._batches += 1
        self._samples += samples
        self._nbytes += packed.nbytes
        self._waited += waited
        self._fetching += fetching
        self._writing += writing
        self._idling += idle
        self._ended = perf_counter_ns()

    def skipped(self, count: int) -> None:
        self._skipped += count

    def stats(self) -> Stats:
        return Stats(
            batches=self._batches,
            samples=self._samples,
            skipped=self._skipped,
            nbytes=self._nbytes,
            workers=self._workers,
            elapsed=max(self._ended - self._began, 0) / 1e9,
            waited=self._waited / 1e9,
            fetching=self._fetching / 1e9,
            writing=self._writing / 1e9,
            idling=self._idling / 1e9,
        )
