"""Stores: finished samples that are kept, for K epochs (cache) or X uses (rotation).

A worker opens one beside its dataset and asks it first. Imports ``sources`` and what stands above.
"""

from stoker.stores.cache import Cache
from stoker.stores.keeping import Keeping
from stoker.stores.rotation import Rotation
from stoker.stores.store import OpenStore, Store

__all__ = ["Cache", "Keeping", "OpenStore", "Rotation", "Store"]
