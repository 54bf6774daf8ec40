"""What a worker does, and where workers live: inline, in threads, in processes.

Imports ``errors``, ``plan``, ``collate``, ``memory`` and ``sources``. Knows nothing of order, credit or recovery: those
are the engine's.
"""

from stoker.workers.backend import Backend, Death, Done, Failed, Outcome, Request
from stoker.workers.options import Inline, MakeBackend, Processes, Threads, Workers, workers_of

__all__ = [
    "Backend",
    "Death",
    "Done",
    "Failed",
    "Inline",
    "MakeBackend",
    "Outcome",
    "Processes",
    "Request",
    "Threads",
    "Workers",
    "workers_of",
]
