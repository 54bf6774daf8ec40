"""Workers in processes of their own: what travels, how they are started, watched and ended."""

from collections.abc import Mapping, Sequence

from stoker.workers.backend import Site
from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.worker import Job

__all__ = ["ProcessesBackend", "prepare"]


def prepare(start: str, job: Job, environments: Sequence[Mapping[str, str]]) -> Site:
    """Packs the job for that way of starting workers. ``environments``: of spawned ones, one each, or none at all.

    Each way is imported when it is asked for: pickling and starting programs take long to import, and a fork
    needs neither.
    """
    if start == "fork":
        from stoker.workers.processes.forking import forking

        return Site(lambda slots, store: ProcessesBackend(forking(job), slots, store))

    from stoker.workers.processes.shipment import Shipment

    shipment = Shipment(job)
    if start == "spawn":
        from stoker.workers.processes.spawning import spawning

        return Site(
            lambda slots, store: ProcessesBackend(spawning(shipment, environments), slots, store), shipment.free
        )

    from stoker.workers.processes.nursery import NurseryLauncher

    return Site(lambda slots, store: ProcessesBackend(NurseryLauncher(shipment), slots, store), shipment.free)
