"""Which samples of a cache a worker has checked, so that it need not do it at each read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class VerifiedSamples:
    """Which samples need not be checked again: those that were, or were written while this worker looked on.

    If the file has changed and no worker has written to it, or a damaged sample was found, nothing is trusted any more.

    Args:
        count: Samples.
        tail: Where the file ended when this worker came.
        first: The first owner who can have written since: an entry of an earlier one that leads beyond the tail is of
            a file that was cut short.
    """

    def __init__(self, count: int, tail: int, first: int) -> None:
        self._checked = np.zeros(count, bool)
        self._from = tail
        self._first = first
        self._seen: tuple[int, int] | None = None
        self._discarded: int | None = None

    def look(self, time: int, changes: int, discarded: int) -> None:
        """When the file was changed, how often by workers, and how often a sample was found to be damaged."""
        if self._seen is not None:
            was_changed = time != self._seen[0] and changes == self._seen[1]
            if was_changed or discarded != self._discarded:
                self._checked[:] = False
                self._from = 2**63
        self._seen, self._discarded = (time, changes), discarded

    def note(self, time: int, changes: int) -> None:
        """The file as this worker has left it."""
        self._seen = time, changes

    def known(self, keys: Sequence[int], rows: Any, within: Any) -> Any:
        """Which entries of the table, of which some lie within the file, need not be checked."""
        seen = (rows["offset"] >= self._from) & (rows["owner"] >= self._first)
        return (self._checked[np.asarray(keys)] | seen) & within

    def add(self, key: int) -> None:
        self._checked[key] = True
