"""A simulated transport: slots that have a size and no memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.memory import Packed
from stoker.workers.transport import HELD_BYTES


@dataclass
class OpenBatch:
    """A batch that the consumer has: what its worker has said of it, and its slot, once it was handed out."""

    packed: Packed
    slot: int = -1


class SimulatedTransport:
    """A batch is held until ``let_go`` is called for it."""

    def __init__(self) -> None:
        self.held_allowed = 2**62
        self.slot_bytes: dict[int, int] = {}  # how large each slot has become: slots grow, and stay so
        self._shares: dict[int, int] = {}  # slot -> batches in it that are held, or still to be handed out
        self._free: list[int] = []

    def note(self, slot: int, nbytes: int) -> None:
        """An answer of that size lies there."""
        if nbytes > self.slot_bytes.get(slot, -1):
            self.slot_bytes[slot] = nbytes
            self.held_allowed = max(2, min(self.held_allowed, HELD_BYTES // max(nbytes, 1)))

    def arrived(self, slot: int) -> None: ...

    def lend(self, slot: int, batches: int) -> None:
        self._shares[slot] = batches

    def open(self, slot: int, packed: Packed) -> tuple[Any, Any]:
        batch = OpenBatch(packed)
        return batch, batch  # it is its own lease

    def drop(self, slot: int) -> None:
        self.let_go(slot)

    def let_go(self, slot: int) -> None:
        """One batch of the slot is held no more."""
        self._shares[slot] -= 1
        if not self._shares[slot]:
            self._free.append(slot)

    def free(self) -> list[int]:
        freed, self._free = self._free, []
        return freed

    def close(self) -> None: ...
