"""What measuring costs: a batch of *small* with ``observe=True`` and without, in alternated rounds of one process."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import stoker
from benchmarks.datasets import Pool

_BATCH, _BATCHES = 256, 400
_ROUNDS, _LEAD_IN, _ROUND_S = 12, 100, 0.8


class _Endless:
    """Epoch after epoch, from two workers that are warm."""

    def __init__(self, observe: bool) -> None:
        self._loader: Any = stoker.Loader(
            Pool(_BATCH * _BATCHES, (1024,), "uint8", pool=1024), _BATCH, workers=2, observe=observe
        )
        self._iterator = iter(self._loader)
        self.take(_BATCHES)

    def take(self, count: int) -> None:
        for _ in range(count):
            if next(self._iterator, None) is None:
                self._iterator = iter(self._loader)

    def seconds_a_batch(self) -> float:
        self.take(_LEAD_IN)
        began, taken = perf_counter(), 0
        while perf_counter() - began < _ROUND_S:
            self.take(20)
            taken += 20
        return (perf_counter() - began) / taken


def measure() -> dict[str, float]:
    """The ratio is the median of the rounds' ratios, since both are measured within the same two seconds."""
    measured, plain = _Endless(True), _Endless(False)
    found = []
    for number in range(_ROUNDS):
        first, second = (measured, plain) if number % 2 else (plain, measured)
        times = {first: first.seconds_a_batch(), second: second.seconds_a_batch()}
        found.append((times[measured], times[plain]))
    return {
        "measured": median(one for one, _ in found),
        "plain": median(one for _, one in found),
        "ratio": median(one / other for one, other in found),
    }
