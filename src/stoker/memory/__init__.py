"""Shared memory: anonymous files, mappings, slots and their leases, and the codec that lays a batch out in a slot.

Imports ``errors`` and ``collate``. Nothing here knows of processes: whoever has the descriptor has the memory.
"""

from stoker.memory.anonymous import allocate, anonymous_file, give_back, unnamed_file
from stoker.memory.codec import Decoder, Encoder, Packed
from stoker.memory.leases import Leases
from stoker.memory.limits import limits_explained
from stoker.memory.mapping import Mapping, Sharing
from stoker.memory.segment import Segment
from stoker.memory.slots import Slot, Slots

__all__ = [
    "Decoder",
    "Encoder",
    "Leases",
    "Mapping",
    "Packed",
    "Segment",
    "Sharing",
    "Slot",
    "Slots",
    "allocate",
    "anonymous_file",
    "give_back",
    "limits_explained",
    "unnamed_file",
]
