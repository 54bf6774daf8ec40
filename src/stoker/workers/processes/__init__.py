"""Workers in processes of their own: what travels, how they are started, watched and ended."""

from collections.abc import Callable

from stoker.memory import Slots
from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.processes.launchers import ChildrenLauncher, NurseryLauncher
from stoker.workers.processes.shipment import Shipment
from stoker.workers.worker import Job

__all__ = ["ProcessesBackend", "prepare"]


def prepare(start: str, job: Job) -> Callable[[Slots], ProcessesBackend]:
    """Packs the job for that way of starting workers; what it returns makes the backend."""
    if start == "fork":
        return lambda slots: ProcessesBackend(ChildrenLauncher.forking(job), slots)
    shipment = Shipment(job)
    launcher = NurseryLauncher if start == "nursery" else ChildrenLauncher.spawning
    return lambda slots: ProcessesBackend(launcher(shipment), slots)
