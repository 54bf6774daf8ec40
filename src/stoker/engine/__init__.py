"""The engine: an ordered parallel map. ``machine`` decides, and is pure; ``driver`` carries out what it decides.

Imports ``errors``, ``plan``, ``collate`` (its trees), ``memory`` and ``workers``.
"""

from stoker.engine.delivery import Delivery
from stoker.engine.driver import Driver
from stoker.engine.machine import Machine

__all__ = ["Delivery", "Driver", "Machine"]
