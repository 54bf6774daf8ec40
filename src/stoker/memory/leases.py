"""Leases: the consumer's hold on a slot, which ends when the last array of the batch is garbage collected.

Every array of a batch is a view with one root array as its base, and so is whatever is made of it without copying
(slices, ``torch.from_numpy``, DLPack): when the root dies, nobody can see the slot any more.
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
    """Hands out root arrays, and collects the slots whose roots have died, from whichever thread."""

    def __init__(self) -> None:
        self.ended: deque[int] = deque()  # slots to be used again; appending to a deque is atomic
        self._held: dict[int, _Lease] = {}

        def end(lease: Any, ended: deque[int] = self.ended) -> None:  # not a method: must not keep the loader alive
            ended.append(lease.slot)

        self._end = end

    def root(self, slot: int, mapping: Mapping, nbytes: int) -> np.ndarray[Any, Any]:
        """A new array over the slot; once it and all its views are gone, the slot is in ``ended``."""
        root = np.frombuffer(mapping.buffer, np.uint8, nbytes)
        lease = _Lease(root, self._end)
        lease.slot = slot
        self._held[slot] = lease
        return root
