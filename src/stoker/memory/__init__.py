"""Shared memory: anonymous files, mappings, slots and their leases, and the codec that lays a batch out in a slot.

Imports ``errors`` and ``collate``. Nothing here knows of processes: whoever has the descriptor has the memory.
"""

from stoker.memory.codec import Decoder, Encoder, Packed
from stoker.memory.leases import Leases
from stoker.memory.segment import Segment
from stoker.memory.slots import Slot, Slots

__all__ = ["Decoder", "Encoder", "Leases", "Packed", "Segment", "Slot", "Slots"]
