"""Which samples of a generation need not be checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Trust:
    """Which samples need not be checked again: those that were, or were written while this worker looked on.

    If the file has changed and no worker has written to it, or a damaged sample was found, nothing is trusted any more.
    """

    def __init__(self, count: int, tail: int) -> None:
        self._checked = np.zeros(count, bool)
        self._from = tail
        self._seen: tuple[int, int, int] | None = None

    def look(self, changed: int, published: int, discarded: int) -> None:
        if self._seen is not None:
            before = self._seen
            if discarded != before[2] or (changed != before[0] and published == before[1]):
                self._checked[:] = False
                self._from = 2**63
        self.note(changed, published, discarded)

    def note(self, changed: int, published: int, discarded: int) -> None:
        """This is how the worker itself has left it."""
        self._seen = changed, published, discarded

    def known(self, keys: Sequence[int], offsets: Any, within: Any) -> Any:
        return (self._checked[np.asarray(keys)] | (offsets >= self._from)) & within

    def add(self, key: int) -> None:
        self._checked[key] = True
