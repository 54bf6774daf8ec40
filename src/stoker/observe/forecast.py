"""The forecast: how long the consumer would wait with other settings, as far as the model can be trusted."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import ceil

from stoker.observe.what_if import Arrangement, Durations, wait_share

SMALL_SHARE = 0.05  # of the time: less waiting than this is not worth a remedy
MANY_WORKERS = 64  # more than these are not proposed

_TRUSTED = 0.15  # the model must give the wait that was measured within this, or its other figures are not told


class Forecast:
    """Asks the model, unless that does not even give what was measured.

    Args:
        durations: How long everything took.
        arrangement: How it was arranged then.
        cores: That there are; 0: not known.
        wait: The share of its time that the consumer waited; None: there were no workers, and it did all itself.
    """

    def __init__(self, durations: Durations, arrangement: Arrangement, cores: int, wait: float | None) -> None:
        self._durations, self._now, self._cores, self._wait = durations, arrangement, cores, wait

    def now(self) -> float:
        """The share of its time that the consumer would wait if nothing is changed."""
        return self._with(self._now)

    def what_if(self, *, workers: int = 0, prefetch: int = 0, in_order: bool | None = None) -> float | None:
        """The share of its time that the consumer would wait; None: that is not known."""
        if not self._is_trusted:
            return None
        now = self._now
        order = now.in_order if in_order is None else in_order
        return self._with(Arrangement(workers or now.workers, prefetch or now.prefetch, order))

    def workers_needed(self) -> int | None:
        """The smallest number of workers with which the consumer would hardly wait; None: none is enough, or known."""
        durations, making, taking = self._durations, self._making, self._taking
        if not self._is_trusted or not taking or making / taking > MANY_WORKERS:
            return None
        first, at_best = max(ceil(making / taking), 1), 1 - durations.batches * durations.step.mean / taking
        for workers in range(first, min(first + 4, MANY_WORKERS + 1)):
            if self._with(replace(self._now, workers=workers)) < at_best + SMALL_SHARE:
                return workers
        return None

    @property
    def is_quick_enough(self) -> bool:
        """Whether workers make batches, on average, as quickly as the consumer could take them."""
        return self._making / self._now.workers < self._taking

    @property
    def _making(self) -> float:
        """Seconds that a worker takes for a unit of work."""
        return self._durations.fetch.mean + self._durations.write.mean

    @property
    def _taking(self) -> float:
        """The least time in which the consumer can take a unit of work, on average."""
        durations = self._durations
        return durations.batches * max(durations.step.mean + durations.own, durations.move)

    @cached_property
    def _is_trusted(self) -> bool:
        """Whether the model gives what was measured."""
        if self._wait is None:  # the consumer does it all, one after the other
            return self._durations.step.count > 0
        return abs(self.now() - self._wait) <= _TRUSTED

    def _with(self, then: Arrangement) -> float:
        return wait_share(self._durations, self._now, then, self._cores)
