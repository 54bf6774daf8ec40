"""The calendar: what happens when, in simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Calendar:
    """Runs actions in the order of their time; those of one time in the order in which they were entered."""

    def __init__(self) -> None:
        self.now = 0.0  # seconds
        self._entries: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def at(self, time: float, action: Callable[[], object]) -> None:
        """Enters an action. One that is late already is run next."""
        heapq.heappush(self._entries, (max(time, self.now), next(self._numbers), action))

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        self.at(self.now + seconds, action)

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Until that says so, which is asked after each action, or until nothing is left to happen."""
        entries = self._entries
        while entries and not is_over():
            self.now, _, action = heapq.heappop(entries)
            action()
