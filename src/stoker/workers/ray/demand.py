"""Demand: how many workers there should be, by how busy they were. Pure arithmetic: time is told to it."""

from __future__ import annotations

import math

_WINDOW_S = 2.0  # over which it is judged
_FULL = 0.9  # of the time with something to do,
_WORK = 0.5  # and of the time at work, the rest being calls: more workers would be used
_EASY = 0.7  # of the time at work, if there were fewer of them: so many would do
_CALM = 3  # windows one after the other, before any is let go


class Demand:
    """Workers that always have something to do are too few; where they idle, the consumer has enough, and some can go.

    Args:
        first: Workers at the start.
        least: There are never fewer,
        most: and never more. Where all three are one, nothing is ever judged.
        now: The time, in seconds.
    """

    def __init__(self, first: int, least: int, most: int, now: float) -> None:
        self.wanted = first
        self._least, self._most = least, most
        self.is_fixed = least == most
        self._began = self._noted_at = now
        self._busy = self._up = self._worked = 0.0  # seconds, over all workers, in this window
        self._last = (0, 0)  # workers that are busy and up since it was last noted
        self._calm = 0

    @property
    def look_again(self) -> float | None:
        """When it should be noted next at the latest."""
        return None if self.is_fixed else self._began + _WINDOW_S

    def worked(self, seconds: float) -> None:
        """A worker has made something in that time."""
        self._worked += seconds

    def note(self, now: float, busy: int, up: int, coming: int) -> None:
        """From now on so many workers have something to do, are up and are on their way."""
        if self.is_fixed:
            return
        passed, (was_busy, was_up) = now - self._noted_at, self._last
        self._busy += passed * was_busy
        self._up += passed * was_up
        self._noted_at, self._last = now, (busy, up)
        if now - self._began >= _WINDOW_S:
            self._judge(now - self._began, coming)
            self._began, self._busy, self._up, self._worked = now, 0.0, 0.0, 0.0

    def _judge(self, seconds: float, coming: int) -> None:
        busy, up, worked = self._busy / seconds, self._up / seconds, self._worked / seconds
        enough = max(self._least, math.ceil(worked / _EASY))
        self._calm = self._calm + 1 if up and enough < self.wanted else 0
        if up and busy >= _FULL * up and worked >= _WORK * up and not coming:
            self.wanted = min(self._most, self.wanted + max(1, self.wanted // 2))
        elif self._calm >= _CALM:
            self.wanted, self._calm = enough, 0
