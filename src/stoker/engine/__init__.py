"""The engine: an ordered parallel map. ``machine`` decides, and is pure; ``executor`` carries out what it decides;
``driver`` asks it, and listens to the workers.

Imports ``errors``, ``plan``, ``collate`` (its trees), ``memory`` and ``workers``.
"""

from stoker.engine.delivery import Delivery, OpenUnit
from stoker.engine.driver import Driver
from stoker.engine.machine import Machine
from stoker.engine.pacing import Pacing
from stoker.engine.units import Units
from stoker.engine.usage import Usage

__all__ = ["Delivery", "Driver", "Machine", "OpenUnit", "Pacing", "Units", "Usage"]
