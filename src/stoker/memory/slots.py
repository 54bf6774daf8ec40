"""Slots: blocks of one anonymous file, reused for ever. Slot k begins at k times a distance that no batch reaches.

The file is sparse, so the distance costs nothing, a slot grows in its place without asking anyone, and one descriptor
serves them all. A slot belongs to one side at a time (a worker that writes, or the consumer that holds a lease), so
there is nothing to lock.
"""

from __future__ import annotations

import os

from stoker.memory.anonymous import allocate, anonymous_file
from stoker.memory.mapping import Mapping, page_aligned

_DISTANCE = 2**40  # bytes from slot to slot
_HEADROOM = 1.25  # growing batches (ragged ones, mostly) would else outgrow their slot again and again


class Slots:
    """One process's view of the slots: maps each when it is first used, and again when it has grown."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._mapped: dict[int, Mapping] = {}

    @classmethod
    def create(cls) -> Slots:
        return cls(anonymous_file())

    def view(self, slot: int, capacity: int) -> Mapping:
        """The slot's memory, at least ``capacity`` bytes of it, which must have been allocated."""
        mapping = self._mapped.get(slot)
        if mapping is None or mapping.size < capacity:
            mapping = self._mapped[slot] = Mapping(self.fd, capacity, slot * _DISTANCE)
        return mapping

    def reserve(self, slot: int, capacity: int, nbytes: int) -> Mapping:
        """The slot's memory, at least ``nbytes`` of it, where ``capacity`` has been allocated so far."""
        nbytes = max(nbytes, 1)  # there is no mapping of nothing
        if nbytes > capacity:
            grown = page_aligned(int(nbytes * _HEADROOM) if capacity else nbytes)
            allocate(self.fd, slot * _DISTANCE, grown)
            capacity = grown
        return self.view(slot, capacity)

    def close(self) -> None:
        """Forgets the mappings; those under arrays that somebody holds stay mapped until the arrays are gone."""
        self._mapped.clear()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
