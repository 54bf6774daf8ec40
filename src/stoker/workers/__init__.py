"""What a worker does, and where workers live: inline, in threads, in processes.

Imports ``errors``, ``plan``, ``collate``, ``memory`` and ``sources``. Knows nothing of order, credit or recovery: those
are the engine's.
"""

from stoker.workers.backend import Answer, Backend, Death, Failed, Made, Request, Skipped, Timing
from stoker.workers.identity import worker_number
from stoker.workers.options import Inline, Processes, Threads, Workers, workers_of
from stoker.workers.site import Site
from stoker.workers.snapshot import Snapshot
from stoker.workers.transport import SlotTransport, Transport

__all__ = [
    "Answer",
    "Backend",
    "Death",
    "Failed",
    "Inline",
    "Made",
    "Processes",
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
