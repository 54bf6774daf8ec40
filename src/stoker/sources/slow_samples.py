"""Samples that take much longer than the others of their batch: found by a clock that is looked at after each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_MUCH_LONGER = 4  # times the median: a sample that took that long is a slow one
_NOTICEABLE_NS = 5_000_000  # what a scheduler may take from a worker in between
_FEW = 0.2  # of the samples: if more of them are slow, slow is what they are

WORTH_A_LOOK_NS = 50_000  # that a sample takes: to look at the clock costs less than a hundredth of it


class SlowSamples(NamedTuple):
    """Those of one batch.

    Attributes:
        samples: How many there are.
        excess: Nanoseconds that they took beyond the median, together.
        slowest: The index of the slowest.
        longest: Nanoseconds that it took.
    """

    samples: int
    excess: int
    slowest: int
    longest: int

    @classmethod
    def among(cls, indices: Sequence[int], times: Sequence[int]) -> SlowSamples | None:
        """``times``: when the first was begun, and when each was there."""
        took = [end - begin for begin, end in pairwise(times)]
        if max(took, default=0) <= _NOTICEABLE_NS:
            return None
        usual = sorted(took)[len(took) // 2]
        slow = [duration for duration in took if duration > max(_MUCH_LONGER * usual, _NOTICEABLE_NS)]
        if not slow or len(slow) > _FEW * len(took):
            return None
        longest = max(slow)
        return cls(len(slow), sum(slow) - len(slow) * usual, int(indices[took.index(longest)]), longest)
