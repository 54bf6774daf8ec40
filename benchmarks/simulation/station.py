"""A station: whatever does one thing after the other, such as a link of the network, or a thread that copies."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.simulation.calendar import Calendar


class Station:
    """A queue, first come, first served, that serves one at a time.

    Args:
        calendar: Whose time it takes.
        seconds: For each that it serves.
        bytes_per_s: And as much more as its bytes take.
    """

    def __init__(self, calendar: Calendar, *, seconds: float = 0.0, bytes_per_s: float = math.inf) -> None:
        self._calendar, self._seconds, self._bytes_per_s = calendar, seconds, bytes_per_s
        self._free_at = 0.0
        self._accepted_s = 0.0  # of work, all in all

    def serve(self, nbytes: int, then: Callable[[], object]) -> None:
        """``then`` happens when it has been served."""
        seconds = self._seconds + nbytes / self._bytes_per_s
        self._accepted_s += seconds
        self._free_at = max(self._free_at, self._calendar.now) + seconds
        self._calendar.at(self._free_at, then)

    @property
    def busy_s(self) -> float:
        """The time for which it has been busy until now."""
        return self._accepted_s - max(0.0, self._free_at - self._calendar.now)
