"""Workers in processes of their own: what travels, how they are started, watched and ended."""

from collections.abc import Callable

from stoker.memory import Slots
from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.worker import Job

__all__ = ["ProcessesBackend", "prepare"]


def prepare(start: str, job: Job) -> Callable[[Slots], ProcessesBackend]:
    """Packs the job for that way of starting workers; what it returns makes the backend.

    Each way is imported when it is asked for: pickling and starting programs take long to import, and a fork
    needs neither.
    """
    if start == "fork":
        from stoker.workers.processes.forking import forking

        return lambda slots: ProcessesBackend(forking(job), slots)

    from stoker.workers.processes.shipment import Shipment

    shipment = Shipment(job)
    if start == "spawn":
        from stoker.workers.processes.spawning import spawning

        return lambda slots: ProcessesBackend(spawning(shipment), slots)

    from stoker.workers.processes.nursery import NurseryLauncher

    return lambda slots: ProcessesBackend(NurseryLauncher(shipment), slots)
