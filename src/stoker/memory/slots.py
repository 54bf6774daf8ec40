"""Slots: blocks of one anonymous file, reused for ever. Slot k begins at k times a distance that no batch reaches.

The file is sparse, so the distance costs nothing, a slot grows in its place without asking anyone, and one descriptor
serves them all. A slot belongs to one side at a time (a worker that writes, or the consumer that holds a lease), so
there is nothing to lock.

Where workers are in the consumer's process and the system has no files in memory, a slot is memory of that process.
"""

from __future__ import annotations

import os

from stoker.memory.anonymous import SEALABLE, allocate, anonymous_file
from stoker.memory.mapping import PAGE, MappedFile, Memory, page_aligned

NO_FILE = -2  # instead of a descriptor; -1 is one that was closed
_DISTANCE = 2**40 if SEALABLE else 2**36  # bytes from slot to slot; file systems end at 2**44, or later
_DOUBLED_UP_TO = 2**22  # bytes; small slots grow to powers of two, as runs of small batches get longer
_HEADROOM = 1.25  # for bigger ones: ragged batches would else outgrow their slot again and again


class Slot:
    """One slot as one process sees it. ``capacity`` is what has been allocated, here or elsewhere, as far as known."""

    __slots__ = ("_fd", "_mapping", "_offset", "capacity")

    def __init__(self, fd: int, number: int) -> None:
        self._fd = fd
        self._offset = number * _DISTANCE
        self._mapping: Memory | None = None
        self.capacity = 0

    def view(self) -> Memory:
        """All its memory: mapped when first used, and again when it has grown."""
        mapping = self._mapping
        if mapping is None or mapping.size < self.capacity:
            mapping = self._mapping = self._mapped(self.capacity)
        return mapping

    def reserve(self, nbytes: int) -> Memory:
        """Its memory, at least ``nbytes`` of it."""
        nbytes = max(nbytes, 1)  # there is no mapping of nothing
        if nbytes > self.capacity:
            grown = self._grown(nbytes)
            if self._fd != NO_FILE:
                allocate(self._fd, self._offset, grown)
            self.capacity = grown
        try:
            return self.view()
        except MemoryError:  # no room to map all of it: perhaps for what is needed now, to report that
            mapping = self._mapping
            if mapping is None or mapping.size < nbytes:
                mapping = self._mapping = self._mapped(page_aligned(nbytes))
            return mapping

    def _mapped(self, nbytes: int) -> Memory:
        if self._fd != NO_FILE:
            return MappedFile(self._fd, nbytes, self._offset)
        memory = Memory(nbytes)
        if self._mapping is not None:
            memory.bytes[: self._mapping.size] = self._mapping.bytes  # as a file would still have it
        return memory

    def _grown(self, nbytes: int) -> int:
        """Just what is needed at first, since most batches are all alike; with room to spare from then on."""
        if not self.capacity:
            return page_aligned(nbytes)
        if nbytes <= _DOUBLED_UP_TO:
            return max(1 << (nbytes - 1).bit_length(), PAGE)
        return page_aligned(int(nbytes * _HEADROOM))


class Slots:
    """One process's view of all slots.

    Threads that work with them borrow them: the descriptor is closed when the last one has given them back, since
    the system may use its number for another file at once.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._slots: dict[int, Slot] = {}
        self._borrowers: set[object] = set()
        self._closed = False

    @classmethod
    def create(cls, *, in_process: bool = False) -> Slots:
        """``in_process``: nobody but this process will see them, so they need no file where one would be on disk."""
        return cls(NO_FILE if in_process and not SEALABLE else anonymous_file())

    def get(self, number: int, capacity: int = 0) -> Slot:
        """The slot, known to have that capacity at least."""
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = Slot(self.fd, number)
        if capacity > slot.capacity:
            slot.capacity = capacity
        return slot

    def borrow(self, borrower: object) -> bool:
        """By a thread, before it uses any. False: they are closed already. Else to be followed by ``give_back``."""
        self._borrowers.add(borrower)  # first: now either we see that they are closed, or who closes them sees us
        if not self._closed:
            return True
        self.give_back(borrower)
        return False

    def give_back(self, borrower: object) -> None:
        self._borrowers.discard(borrower)
        if self._closed and not self._borrowers:
            self._close_file()

    def close(self) -> None:
        """Forgets the mappings; those under arrays that somebody holds stay mapped until the arrays are gone."""
        self._closed = True
        if not self._borrowers:
            self._close_file()

    def _close_file(self) -> None:
        self._slots.clear()
        fd, self.fd = self.fd, -1  # and closed in the next call: no interrupt and no thread comes in between
        if fd >= 0:
            os.close(fd)
