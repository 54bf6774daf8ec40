"""Figures of the drop-in: those of the stream that makes its batches, in the words of torch's arguments."""

from __future__ import annotations

import os
from dataclasses import replace
from time import perf_counter
from typing import Any

from stoker import Setup, Stats


class Figures:
    """What the workers have done that a loader has, or had last.

    ``batches``: that the consumer was given. The stream knows bundles of them only. ``retries``: of samples of them.
    """

    def __init__(self) -> None:
        self.batches = self.retries = 0
        self._making_alone = 0.0  # seconds, without workers
        self._began = self._ended = 0.0  # the first batch without workers, and the last one
        self._batch_size: int | None = None
        self._observed: Any = None  # of the stream that makes the batches, or made the last ones

    @property
    def waited(self) -> float:
        """Seconds for which the consumer was blocked."""
        return self._making_alone if self._observed is None else float(self._observed.waited)

    def made_alone(self, seconds: float, batch_size: int | None) -> None:
        """A batch was made by the consumer itself."""
        self._ended = perf_counter()
        self._began = self._began or self._ended - seconds
        self.batches += 1
        self._making_alone += seconds
        self._batch_size = batch_size

    def note_retry(self) -> None:
        """The consumer itself has read a sample again."""
        self.retries += 1

    def follow(self, observed: Any, batch_size: int | None) -> None:
        """From now on what was observed of this stream. ``batch_size``: None: not known."""
        self._observed, self._batch_size, self.batches, self.retries = observed, batch_size, 0, 0

    def adapt(self, stats: Stats) -> Stats:
        """The stream's figures as the loader's. From any thread."""
        own = replace(stats.setup, making="dataset[i] and collate_fn", prefetch_argument="prefetch_factor", pulls=False)
        if own.is_here:
            own = replace(own, workers_argument="num_workers")
        samples, retries = self._samples, self.retries
        return replace(stats, setup=own, batches=self.batches, samples=samples, calls=samples, retries=retries)

    def stats(self) -> Stats:
        if self._observed is None:
            return self._stats_alone()
        stats: Stats = self._observed.stats()
        return stats

    def _stats_alone(self) -> Stats:
        """Without workers: how long the consumer made batches itself is all that is known."""
        samples, elapsed, making = self._samples, self._ended - self._began, self._making_alone
        setup = Setup(backend="Inline", workers_argument="num_workers")
        stats = Stats(
            self.batches, samples, 0, 0, 0, elapsed, making, 0.0, 0.0, 0.0, 0.0, (), waiting=making, setup=setup
        )
        return replace(stats, retries=self.retries)

    @property
    def _samples(self) -> int:
        return self.batches * (self._batch_size or 0)

    def report(self, path: str | os.PathLike[str]) -> None:
        if self._observed is None:
            raise RuntimeError("there is nothing to report: no loop with workers has begun. Pass num_workers=1 or more")
        self._observed.report(path)
