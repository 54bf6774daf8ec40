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

from stoker.memory.mapping import Memory


class Lease(weakref.ref[np.ndarray[Any, Any]]):
    """Of one root array. It counts once its ``slot`` is set: an array that dies before was never handed out."""

    __slots__ = ("slot",)
    slot: int


class Leases:
    """Hands out root arrays, and tells which slots are free again."""

    def __init__(self) -> None:
        self._ended: deque[Lease] = deque()  # filled from whichever thread; appending to a deque is atomic
        self._dropped: deque[int] = deque()  # slots
        self._shares: dict[int, int] = {}  # slot -> batches in it that are held, or still to be handed out
        self._held: dict[int, list[Lease]] = {}

    def open(self, slot: int, batches: int) -> None:
        """So many batches lie in the slot: each will be either rooted or dropped."""
        self._shares[slot] = batches
        self._held[slot] = []

    def root(self, slot: int, mapping: Memory, offset: int, nbytes: int) -> np.ndarray[Any, Any]:
        """A new array over these bytes of the slot, which holds the slot for as long as it has views."""
        root, lease = self.offer(slot, mapping, offset, nbytes)
        lease.slot = slot
        return root

    def offer(self, slot: int, mapping: Memory, offset: int, nbytes: int) -> tuple[np.ndarray[Any, Any], Lease]:
        """The same, and its lease, whose ``slot`` is to be set when the array is handed out."""
        root = np.frombuffer(mapping.buffer, np.uint8, nbytes, offset)
        lease = Lease(root, self._ended.append)  # which is no Python: no interrupt can keep it from being done
        lease.slot = -1
        self._held[slot].append(lease)
        return root, lease

    def drop(self, slot: int) -> None:
        """One batch of the slot will not be handed out, or had no arrays."""
        self._dropped.append(slot)

    def free(self) -> list[int]:
        """Slots whose last batch has gone since the last call."""
        while self._ended:
            slot = getattr(self._ended.popleft(), "slot", -1)
            if slot >= 0:
                self._dropped.append(slot)
        free, shares = [], self._shares
        while self._dropped:
            slot = self._dropped.popleft()
            shares[slot] -= 1
            if not shares[slot]:
                del shares[slot], self._held[slot]
                free.append(slot)
        return free
