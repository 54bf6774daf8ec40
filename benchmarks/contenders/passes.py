"""A contender that is iterated from beginning to end again and again, where the beginning counts, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from benchmarks import memory
from benchmarks.contenders.contender import Count


@dataclass(frozen=True)
class Passes:
    """A round is as many whole passes as begin within its time. The consumer lets go of each item at once.

    `begin`: gives what is iterated in the next pass, `items` of them.
    """

    begin: Callable[[], Iterable[Any]]
    items: int
    closer: Callable[[], None]

    def warm_up(self, most_seconds: float) -> None:
        """One pass, however long it takes."""
        self._pass()

    def run(self, seconds: float) -> Count:
        before, begin, passes = memory.cpu_seconds(os.getpid()), perf_counter(), 0
        while (elapsed := perf_counter() - begin) < seconds:
            self._pass()
            passes += 1
        return Count(passes * self.items, elapsed, memory.cpu_seconds(os.getpid()) - before)

    def close(self) -> None:
        self.closer()

    def _pass(self) -> None:
        count = 0
        for item in self.begin():
            count += 1
            del item
        if count != self.items:
            raise RuntimeError(f"a pass gave {count} items instead of {self.items}")
