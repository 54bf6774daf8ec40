"""What a worker does, and where workers live: inline, in threads, in processes, on a Ray cluster.

Imports ``errors``, ``plan``, ``collate``, ``memory`` and ``sources``. Knows nothing of order, credit or recovery: those
are the engine's.
"""

from stoker.workers.backend import (
    Allowance,
    Answer,
    Arrival,
    Backend,
    Death,
    Departure,
    Failed,
    Made,
    News,
    Request,
    Skipped,
    Timing,
)
from stoker.workers.identity import worker_number
from stoker.workers.options import Auto, Inline, Processes, Threads, Workers, workers_of
from stoker.workers.ray_options import Ray
from stoker.workers.site import Site
from stoker.workers.snapshot import Snapshot
from stoker.workers.transport import SlotTransport, Transport

__all__ = [
    "Allowance",
    "Answer",
    "Arrival",
    "Auto",
    "Backend",
    "Death",
    "Departure",
    "Failed",
    "Inline",
    "Made",
    "News",
    "Processes",
    "Ray",
    "Request",
    "Site",
    "Skipped",
    "SlotTransport",
    "Snapshot",
    "Threads",
    "Timing",
    "Transport",
    "Workers",
    "worker_number",
    "workers_of",
]
