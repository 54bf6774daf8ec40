"""Shared memory: anonymous files, mappings, slots and their leases, and the codec that lays a batch out in a slot.

Imports ``errors`` and ``collate``. Nothing here knows of processes: whoever has the descriptor has the memory.
"""

from stoker.memory.anonymous import allocate, anonymous_file, give_back, unnamed_file
from stoker.memory.closing import Closing
from stoker.memory.codec import Decoder, Encoder, Packed
from stoker.memory.descriptors import above_stdio, fill_stdio, is_open, pipe, reopened
from stoker.memory.leases import Lease, Leases
from stoker.memory.limits import limits_explained
from stoker.memory.loose_arrays import LooseArrays
from stoker.memory.mapping import MappedFile, Sharing, mappings_left
from stoker.memory.segment import Segment
from stoker.memory.slots import Slot, Slots

__all__ = [
    "Closing",
    "Decoder",
    "Encoder",
    "Lease",
    "Leases",
    "LooseArrays",
    "MappedFile",
    "Packed",
    "Segment",
    "Sharing",
    "Slot",
    "Slots",
    "above_stdio",
    "allocate",
    "anonymous_file",
    "fill_stdio",
    "give_back",
    "is_open",
    "limits_explained",
    "mappings_left",
    "pipe",
    "reopened",
    "unnamed_file",
]
