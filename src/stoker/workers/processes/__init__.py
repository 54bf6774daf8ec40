"""Workers in processes of their own: what travels, how they are started, watched and ended."""

from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.processes.shipment import Shipment

__all__ = ["ProcessesBackend", "Shipment"]
