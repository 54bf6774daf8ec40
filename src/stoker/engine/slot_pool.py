"""The numbers of slots: which are free, and how many the consumer holds."""

from __future__ import annotations


class SlotPool:
    """There are as many slots as credit and leases have needed so far: nobody ever waits for one."""

    def __init__(self) -> None:
        self.count = 0  # of all slots that there are
        self.held = 0  # of those that the consumer holds
        self._free: list[int] = []  # the last used on top: it is the warmest

    def take(self) -> int:
        """One that nobody uses."""
        if self._free:
            return self._free.pop()
        self.count += 1
        return self.count - 1

    def give_back(self, slot: int) -> None:
        """Nobody uses it any more, and the consumer never had it."""
        self._free.append(slot)

    def lend(self) -> int:
        """One goes to the consumer. How many it holds now."""
        self.held += 1
        return self.held

    def released(self, slot: int) -> None:
        """The consumer holds it no more."""
        self._free.append(slot)
        self.held -= 1
