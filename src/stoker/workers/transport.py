"""The transport: how a result gets from a worker to the consumer, and its memory back to the workers.

    worker ──Writer.write──> slot ──Answer──> Transport.arrived, lend ──open──> arrays over the slot
                              ^                                                   │ the last of them is gone
                              └──────────────── Transport.free ───────────────────┘

A slot is known by its number. The engine says which slot a result is to lie in, and when it may be used again; where
that memory is, how large it is and how a batch lies in it is known only here and to the workers.
"""

from __future__ import annotations

from typing import Any, Protocol

from stoker.memory import Decoder, Encoder, Lease, Leases, LooseArrays, Packed, Slots, mappings_left

_ALIGN = 64  # bytes: where the next batch of a run may begin
HELD_BYTES = 2**30  # slots that the consumer may hold beyond those in use; further batches are given as copies


class Transport(Protocol):
    """The consumer's side, as the engine sees it. Called from one thread at a time.

    Attributes:
        held_allowed: Slots that the consumer may hold before it gets copies.
    """

    held_allowed: int

    def arrived(self, slot: int) -> None:
        """An answer has come, whose results lie in the slot."""

    def lend(self, slot: int, batches: int) -> None:
        """So many batches of the slot are to be handed out: each will be either opened or dropped."""

    def open(self, slot: int, packed: Packed) -> tuple[Any, Lease]:
        """A batch, as views of the slot, and its lease: it counts once its ``slot`` is set, as the batch is handed out.

        Until then, an interrupt loses nothing: the batch can be opened again.
        """

    def drop(self, slot: int) -> None:
        """One batch of the slot will not be handed out."""

    def free(self) -> list[int]:
        """Slots whose last batch nobody sees any more, since the last call."""

    def close(self) -> None:
        """Frees the memory, but for what is under arrays that somebody holds. May be called twice."""


class SlotTransport:
    """Results lie in slots that both sides have mapped, so that opening one copies nothing.

    Args:
        slots: The consumer's view of them. Backends hand them on to their workers.
    """

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.held_allowed = 2**62
        self._leases = Leases()
        self._decoder = Decoder()
        self._largest, self._last = 1, -1  # of the slots that have been used: bytes, and number

    def arrived(self, slot: int) -> None:
        """Learns how large slots are."""
        capacity = self.slots.get(slot).capacity
        if capacity > self._largest or slot > self._last:
            self._largest, self._last = max(self._largest, capacity), max(self._last, slot)
            # Those that it has come to hold can be held again without another mapping.
            self.held_allowed = max(2, min(HELD_BYTES // self._largest, self._last + 1 + mappings_left()))

    def lend(self, slot: int, batches: int) -> None:
        self._leases.open(slot, batches)

    def open(self, slot: int, packed: Packed) -> tuple[Any, Lease]:
        mapping = self.slots.get(slot).view()
        root, lease = self._leases.offer(slot, mapping, packed.offset, packed.nbytes)
        return self._decoder.decode(packed, mapping, root), lease

    def drop(self, slot: int) -> None:
        self._leases.drop(slot)

    def free(self) -> list[int]:
        return self._leases.free()

    def close(self) -> None:
        self.slots.close()


class Writer:
    """A worker's side: writes the batches of a run into a slot, one behind the other.

    Args:
        slots: The worker's view of them.
        shared: The consumer is in this process, so nothing need be pickled.
        loose: Takes large arrays, which are then not written.
    """

    def __init__(self, slots: Slots, *, shared: bool, loose: LooseArrays | None = None) -> None:
        self._slots, self._loose = slots, loose
        self._encoder = Encoder(shared=shared)
        self._slot = self._end = 0  # its number, and the end of what is kept in it

    def begin(self, slot: int) -> None:
        """From now on into this slot, of which nothing is needed any more."""
        self._slot, self._end = slot, 0

    def write(self, batch: Any) -> Packed:
        """Behind what is kept. Written over by the next one unless it is kept, too."""
        if self._loose is not None:
            self._loose.clear()
        return self._encoder.encode(batch, self._slots.get(self._slot), self._end, self._loose)

    def keep(self, packed: Packed) -> None:
        """What was written last is a result."""
        self._end = -(-packed.end // _ALIGN) * _ALIGN
