"""A contender that gives packed rows: it is counted in tokens, and not in places of rows that may be padding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contenders.contender import Count, Stream

ROW = 2048  # tokens
TOKENS = "tokens"  # the key of samples that must be dicts


@dataclass
class PackedStream:
    """The share of tokens is found in the warm-up: to count them in each batch would cost as much as loading it.

    ``segments``: the key of the segment ids, which are 0 for padding.
    """

    stream: Stream
    segments: str
    share: float = 1.0

    def warm_up(self, most_seconds: float) -> None:
        end, batches = perf_counter() + most_seconds, []
        for _ in range(self.stream.epoch):
            batches.append(np.array(next(self.stream.batches)[self.segments]))
            if perf_counter() >= end:
                break
        self.share = share_of(iter(batches))

    def run(self, seconds: float) -> Count:
        count = self.stream.run(seconds)
        return Count(count.batches * self.share, count.seconds, count.cpu_seconds)

    def close(self) -> None:
        self.stream.close()


def share_of(segments: Iterator[Any]) -> float:
    """The share of places that hold tokens."""
    used, places = 0, 0
    for one in segments:
        used, places = used + int(np.count_nonzero(one)), places + np.asarray(one).size
    return used / places
