"""Samples that took much longer than the others of their batch, counted over a run."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.sources import SlowSamples

_SLOWEST = 5  # samples that are kept by name


@dataclass(frozen=True)
class SlowSample:
    """``dataset[index]`` took so many seconds."""

    index: int
    seconds: float


@dataclass(frozen=True)
class SlowSampleStats:
    """Samples that took much longer than the others of their batch: four times the median, and 5 ms.

    Attributes:
        count: How many there were.
        excess: Seconds that they took beyond the median of their batch, together.
        slowest: Those that took longest, one of a batch at most.
    """

    count: int = 0
    excess: float = 0.0
    slowest: tuple[SlowSample, ...] = ()


class SlowSampleCount:
    """Adds them up."""

    def __init__(self) -> None:
        self._count = self._excess = 0
        self._slowest: dict[int, int] = {}  # nanoseconds, by index

    def add(self, slow: SlowSamples) -> None:
        self._count += slow.samples
        self._excess += slow.excess
        took = self._slowest | {slow.slowest: max(slow.longest, self._slowest.get(slow.slowest, 0))}
        self._slowest = dict(sorted(took.items(), key=lambda one: -one[1])[:_SLOWEST])

    def stats(self) -> SlowSampleStats:
        """From any thread."""
        slowest = tuple(SlowSample(index, ns / 1e9) for index, ns in self._slowest.items())
        return SlowSampleStats(self._count, self._excess / 1e9, slowest)
