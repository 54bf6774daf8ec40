"""Samples -> one tree of arrays. Copying is put off, so that it can go straight into the memory of a slot.

Imports numpy and ``errors`` only; torch tensors are recognised without importing torch.
"""

from stoker.collation.columns import Column, Objects
from stoker.collation.default import collate
from stoker.collation.pack import Pack
from stoker.collation.pad import pad

__all__ = ["Column", "Objects", "Pack", "collate", "pad"]
