"""What a worker does, and where workers live: inline, in threads, in processes.

Imports ``errors``, ``plan``, ``collate``, ``memory`` and ``sources``. Knows nothing of order, credit or recovery: those
are the engine's.
"""

from stoker.workers.backend import Answer, Backend, Death, Failed, Made, Request, Skipped
from stoker.workers.options import Inline, MakeBackend, Processes, Threads, Workers, workers_of

__all__ = [
    "Answer",
    "Backend",
    "Death",
    "Failed",
    "Inline",
    "Made",
    "MakeBackend",
    "Processes",
    "Request",
    "Skipped",
    "Threads",
    "Workers",
    "workers_of",
]
