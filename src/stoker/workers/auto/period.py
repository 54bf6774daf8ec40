"""A period: what is measured between two looks at the number of workers."""

from __future__ import annotations

from collections.abc import Callable

from stoker.workers.auto.headroom import Headroom
from stoker.workers.auto.tuning import Measurement
from stoker.workers.backend import Answer, Made

_SHORTEST_NS = 300_000_000
_BATCHES = 16  # in a period at least,
_BY_WORKER = 3  # and by each worker, on average;
_LONG_NS, _LEAST_BY_WORKER = 5_000_000_000, 2  # if they take long, fewer
_PAUSED = 0.5  # of a period in which the consumer did not ask once: it did something else, and nothing is learnt


class Period:
    """Adds up what workers answer and how long the consumer waits. Times are in nanoseconds of ``perf_counter_ns``.

    Args:
        run_delay: For how long workers have waited for a processor so far.
    """

    def __init__(self, run_delay: Callable[[], int]) -> None:
        self._run_delay = run_delay
        self.restart()

    def restart(self, settling: int = 0) -> None:
        """The next period begins with the next answer, after so many that do not count."""
        self._settling = settling
        self._began = self._looked = self._longest_gap = 0
        self._batches = self._samples = self._cycles = self._busy = self._cpu = 0
        self._waited = self._starved = self._delayed_before = 0

    def _begin(self, now: int) -> None:
        self._began = self._looked = now
        self._waited = self._starved = 0
        self._delayed_before = self._run_delay()

    def waited(self, nanoseconds: int, *, has_idle_worker: bool) -> None:
        """The consumer was blocked."""
        self._waited += nanoseconds
        self._looked += nanoseconds  # it has asked all that time
        if has_idle_worker:
            self._starved += nanoseconds

    def answered(self, answer: Answer, now: int) -> None:
        """A worker has made a run."""
        if self._settling > 0:
            self._settling -= 1
            return
        if not self._began:
            self._begin(now)
        for result in answer.results:
            if isinstance(result, Made):
                free, began, _, written, _ = result.timing
                self._batches += 1
                self._samples += result.samples
                self._busy += written - began
                self._cycles += written - min(max(free, self._began), began)
                self._cpu += result.cpu

    def look(self, now: int, workers: int, headroom: Headroom) -> Measurement | None:
        """What was measured, if that is enough; then the next period begins."""
        if not self._began:
            return None
        self._longest_gap, self._looked = max(self._longest_gap, now - self._looked), now
        length = now - self._began
        enough = _LEAST_BY_WORKER * workers if length >= _LONG_NS else max(_BATCHES, _BY_WORKER * workers)
        if length < _SHORTEST_NS or self._batches < enough:
            return None
        memory, limit = headroom.available()
        measured = Measurement(
            seconds=length / 1e9,
            workers=workers,
            samples=self._samples,
            cycles=self._cycles / 1e9,
            busy=self._busy / 1e9,
            cpu=self._cpu / 1e9,
            delayed=max(0, self._run_delay() - self._delayed_before) / 1e9,
            waited=self._waited / 1e9,
            starved=self._starved / 1e9,
            memory=memory,
            memory_limit=limit,
            worker_bytes=headroom.of_a_worker(),
            slot_bytes=headroom.of_slots(),
        )
        was_paused = self._longest_gap > _PAUSED * length
        self.restart()
        self._begin(now)
        return None if was_paused else measured
