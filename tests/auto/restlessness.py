"""Tunings that say what a test wants, instead of what was measured."""

from __future__ import annotations

import random


class Restless:
    """Wants another number of workers after each answer, and ends those that rest, or not, as it likes."""

    def __init__(self, *, first: int, least: int, most: int, seed: int = 0, **_: int) -> None:
        self._chance = random.Random(seed)
        self._least, self._most = least, most
        self.wanted, self.ahead, self.is_trying = first, 1, False

    def note(self, _) -> None:
        self.wanted = self._chance.randint(self._least, self._most)
        self.ahead = self._chance.choice([1, 2, 4])
        self.is_trying = self._chance.random() < 0.5

    def died(self) -> None:
        self.note(None)

    def refused(self, up: int) -> None:
        self.wanted = max(up, 1)


class Determined:
    """Wants all that there may be once the first answers have come; and, if some cannot be started, no more of them."""

    def __init__(self, *, first: int, least: int, most: int, **_: int) -> None:
        self._most = most
        self.wanted, self.ahead, self.is_trying = first, 1, False
        self.refusals = 0

    def note(self, _) -> None:
        if not self.refusals:
            self.wanted = self._most

    def died(self) -> None:
        pass

    def refused(self, up: int) -> None:
        self.refusals += 1
        self.wanted = max(up, 1)
