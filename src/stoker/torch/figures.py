"""Figures of the drop-in: those of the stream that makes its batches, in the words of torch's arguments."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from stoker import Setup, Stats


class Figures:
    """What the workers have done that a loader has, or had last.

    ``batches``: that the consumer was given. The stream knows bundles of them only.
    """

    def __init__(self) -> None:
        self.batches = 0
        self._making_alone = 0.0  # seconds, without workers
        self._batch_size: int | None = None
        self._observed: Any = None  # of the stream that makes the batches, or made the last ones

    @property
    def waited(self) -> float:
        """Seconds for which the consumer was blocked."""
        return self._making_alone if self._observed is None else float(self._observed.waited)

    def made_alone(self, seconds: float) -> None:
        """A batch was made by the consumer itself."""
        self.batches += 1
        self._making_alone += seconds

    def follow(self, observed: Any, batch_size: int | None) -> None:
        """From now on what was observed of this stream. ``batch_size``: None: not known."""
        self._observed, self._batch_size, self.batches = observed, batch_size, 0

    def adapt(self, stats: Stats) -> Stats:
        """The stream's figures as the loader's. From any thread."""
        own = replace(stats.setup, making="dataset[i] and collate_fn", prefetch_argument="prefetch_factor", pulls=False)
        if own.is_here:
            own = replace(own, workers_argument="num_workers")
        samples = self.batches * (self._batch_size or 0)
        return replace(stats, setup=own, batches=self.batches, samples=samples, calls=samples)

    def stats(self) -> Stats:
        if self._observed is None:
            return Stats(0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, (), setup=Setup(backend="Inline"))
        stats: Stats = self._observed.stats()
        return stats

    def report(self, path: str | os.PathLike[str]) -> None:
        if self._observed is None:
            raise RuntimeError("there is nothing to report: no loop with workers has begun. Pass num_workers=1 or more")
        self._observed.report(path)
