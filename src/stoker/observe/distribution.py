"""How long something takes, as a distribution: counts in buckets, and the percentiles that come of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_PER_OCTAVE = 8  # buckets between a duration and its double: a percentile is right within 5 %
_BUCKETS = 48 * _PER_OCTAVE  # from a nanosecond to three days


@dataclass(frozen=True)
class Distribution:
    """Durations in seconds.

    Attributes:
        count: How many there were.
        total: All of them together.
        p50: Half of them took no longer than that; ``p90`` and ``p99`` are alike. Right within 5 %.
        largest: The longest one.
        counts: How many there are in each bucket that has any, by its upper end.
    """

    count: int = 0
    total: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    largest: float = 0.0
    counts: tuple[tuple[float, int], ...] = ()

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def cut(self, most: float) -> Distribution:
        """The same, if none had taken longer than that."""
        counts = tuple((min(upper, most), count) for upper, count in self.counts)
        beyond = sum((min(upper, self.largest) - most) * count for upper, count in self.counts if upper > most)
        p90, p99, largest = (min(duration, most) for duration in (self.p90, self.p99, self.largest))
        return Distribution(self.count, max(self.total - beyond, 0.0), min(self.p50, most), p90, p99, largest, counts)


class Histogram:
    """Takes in durations in nanoseconds, many at a time."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._total = self._largest = 0

    def add(self, durations: npt.NDArray[np.int64]) -> None:
        if not len(durations):
            return
        durations = np.maximum(durations, 1)
        buckets = np.minimum((np.log2(durations) * _PER_OCTAVE).astype(np.int64), _BUCKETS - 1)
        self._counts += np.bincount(buckets, minlength=_BUCKETS)
        self._total += int(durations.sum())
        self._largest = max(self._largest, int(durations.max()))

    def distribution(self) -> Distribution:
        count = int(self._counts.sum())
        if not count:
            return Distribution()
        upper = np.exp2((np.arange(_BUCKETS) + 1) / _PER_OCTAVE) / 1e9
        largest, reached = self._largest / 1e9, np.cumsum(self._counts)
        p50, p90, p99 = (
            min(float(upper[np.searchsorted(reached, share * count)]) * 2 ** (-0.5 / _PER_OCTAVE), largest)
            for share in (0.5, 0.9, 0.99)
        )
        filled = tuple((float(upper[at]), int(self._counts[at])) for at in np.flatnonzero(self._counts))
        return Distribution(count, self._total / 1e9, p50, p90, p99, largest, filled)
