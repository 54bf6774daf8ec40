"""Leases: the consumer's hold on a slot, which ends when the last array in it is garbage collected.

Every array of a batch is a view with one root array as its base, and so is whatever is made of it without copying
(slices, ``torch.from_numpy``, DLPack): when the root dies, nobody can see the batch any more. When all batches that lie
in the slot are gone, or were never handed out, the slot may be used again.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np

from stoker.memory.mapping import Mapping


class _Lease(weakref.ref[np.ndarray[Any, Any]]):
    __slots__ = ("slot",)
    slot: int


class Leases:
    """Hands out root arrays, and tells which slots are free again."""

    def __init__(self) -> None:
        self._ended: deque[int] = deque()  # filled from whichever thread; appending to a deque is atomic
        self._shares: dict[int, int] = {}  # slot -> batches in it that are held, or still to be handed out
        self._held: dict[int, list[_Lease]] = {}

        def end(lease: Any, ended: deque[int] = self._ended) -> None:  # not a method: it must not keep us alive
            ended.append(lease.slot)

        self._end = end

    def open(self, slot: int, batches: int) -> None:
        """So many batches lie in the slot: each will be either rooted or dropped."""
        self._shares[slot] = batches
        self._held[slot] = []

    def root(self, slot: int, mapping: Mapping, offset: int, nbytes: int) -> np.ndarray[Any, Any]:
        """A new array over these bytes of the slot, which holds the slot for as long as it has views."""
        root = np.frombuffer(mapping.buffer, np.uint8, nbytes, offset)
        lease = _Lease(root, self._end)
        lease.slot = slot
        self._held[slot].append(lease)
        return root

    def drop(self, slot: int) -> None:
        """One batch of the slot will not be handed out, or had no arrays."""
        self._ended.append(slot)

    def free(self) -> list[int]:
        """Slots whose last batch has gone since the last call."""
        free, ended, shares = [], self._ended, self._shares
        while ended:
            slot = ended.popleft()
            shares[slot] -= 1
            if not shares[slot]:
                del shares[slot], self._held[slot]
                free.append(slot)
        return free
