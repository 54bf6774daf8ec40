"""How a loader was told to work, as far as a diagnosis needs to know it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setup:
    """What was passed to a loader or stream.

    Attributes:
        backend: Where workers live: "Inline", "Threads", "Processes", "Ray", or "Auto".
        prefetch: Batches that are made ahead, per worker.
        in_order: Batches come in the order of the plan.
        on_device: Batches that a thread moves to a device ahead of the consumer; 0: there is no such thread.
        has_cache: Samples are kept in a ``Cache``.
        is_here: Workers are on this machine.
        shares_interpreter: Workers are threads of the consumer's own process.
        pulls: What there is to do comes from an iterator of the user's.
        making: What workers spend "fetch" in, in the user's own terms.
        workers_argument: The name of the argument that says how many workers there are.
        prefetch_argument: The name of the argument that says how many batches are made ahead.
    """

    backend: str = "Processes"
    prefetch: int = 2
    in_order: bool = True
    on_device: int = 0
    has_cache: bool = False
    is_here: bool = True
    shares_interpreter: bool = False
    pulls: bool = False
    making: str = "dataset[i]"
    workers_argument: str = "workers"
    prefetch_argument: str = "prefetch"
