"""What a contender is: something that warms up and runs rounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from benchmarks import memory
from benchmarks.datasets import Dataset
from benchmarks.workloads import Workload

PREFETCH = 2  # batches ready ahead per worker, for everyone who lets us say so: torch's default
LEAD_IN_S = 0.3  # the start of a round eats up what was prefetched while idle; it is not measured
LEAD_IN_BATCHES = 8


@dataclass(frozen=True)
class Job:
    """What is to be loaded."""

    workload: Workload
    dataset: Dataset
    shuffle: bool
    scratch: Path  # a folder for what a contender keeps on disk; it goes with the run

    @property
    def collate(self) -> Any:
        """What makes a batch of a list of samples; None: the contender's own default."""
        return getattr(self.dataset, "collate", None)

    def order(self, epoch: int) -> list[int]:
        """An epoch's indices, for those who leave the order to their caller."""
        if not self.shuffle:
            return list(range(len(self.dataset)))
        order: list[int] = np.random.default_rng(epoch).permutation(len(self.dataset)).tolist()
        return order

    def index_batches(self) -> Iterator[list[int]]:
        """The indices of batch after batch, epoch after epoch, without end."""
        size, epoch = self.workload.batch_size, 0
        while True:
            order = self.order(epoch)
            for start in range(0, len(order), size):
                yield order[start : start + size]
            epoch += 1


@dataclass(frozen=True)
class Count:
    """What a contender did in a round."""

    batches: float  # those who count samples may end within one
    seconds: float
    cpu_seconds: float


class Contender(Protocol):
    """Warmed up once, then measured in rounds, then closed."""

    def warm_up(self, most_seconds: float) -> None: ...
    def run(self, seconds: float) -> Count: ...
    def close(self) -> None: ...


@dataclass
class Stream:
    """A contender that is an endless iterator of batches, epoch after epoch.

    The consumer takes each batch and does nothing with it: what is measured is the loader. ``lead_in``: so many batches
    at least were perhaps made while others were measured; they are taken before the clock runs.
    """

    batches: Iterator[Any]
    epoch: int
    closer: Callable[[], None]
    lead_in: int = LEAD_IN_BATCHES

    def warm_up(self, most_seconds: float) -> None:
        """Takes one epoch, or as much of it as there is time for."""
        end = perf_counter() + most_seconds
        for _ in range(self.epoch):
            next(self.batches)
            if perf_counter() >= end:
                return

    def run(self, seconds: float) -> Count:
        self._take(LEAD_IN_S, self.lead_in)
        before = memory.cpu_seconds(os.getpid())
        count, elapsed = self._take(seconds, 1)
        return Count(count, elapsed, memory.cpu_seconds(os.getpid()) - before)

    def _take(self, seconds: float, least: int) -> tuple[int, float]:
        begin = perf_counter()
        end = begin + seconds
        for count, _ in enumerate(self.batches, start=1):
            if (now := perf_counter()) >= end and count >= least:
                return count, now - begin
        raise RuntimeError("the loader ended, though it was to go on without end")

    def close(self) -> None:
        self.closer()
