"""Workers in processes of their own: what travels, how they are started, watched and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stoker.workers.backend import Backend
from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.processes.launcher import Launcher
from stoker.workers.processes.lifelines import HAS_PIDFD
from stoker.workers.site import OwnSite, Site
from stoker.workers.snapshot import Contents, Snapshot
from stoker.workers.transport import SlotTransport
from stoker.workers.worker import Job

if TYPE_CHECKING:
    from stoker.workers.processes.nursery import Nursery
    from stoker.workers.processes.shipment import Shipment

__all__ = ["ProcessesBackend", "prepare"]


def prepare(start: str, job: Job, environments: Sequence[Mapping[str, str]]) -> Site:
    """Packs the job for that way of starting workers. ``environments``: of spawned ones, one each, or none at all.

    Each way is imported when it is asked for: pickling and starting programs take long to import, and a fork
    needs neither.
    """
    return OwnSite(job, _forked, Contents) if start == "fork" else ShippedSite(start, job, environments)


def _forked(job: Job, transport: SlotTransport, store: int) -> Backend:
    from stoker.workers.processes.forking import forking

    return ProcessesBackend(forking(job), transport, store, shares_program=True)


class ShippedSite:
    """For workers that get the job as a pickle. While they are started anew for another job, their nursery stays."""

    def __init__(self, start: str, job: Job, environments: Sequence[Mapping[str, str]]) -> None:
        from stoker.workers.processes.shipment import Shipment

        self._start = start if HAS_PIDFD else "spawn"  # a nursery needs more of Linux than that
        self._job, self._environments = job, environments
        self._shipment = Shipment(job)
        self._is_built = False
        self._held: Nursery | None = None

    def pack(self) -> None:
        self._shipment.segments()

    def build(self, transport: SlotTransport, store: int) -> Backend:
        self._is_built = True
        try:
            return ProcessesBackend(self._launcher(self._shipment), transport, store)
        finally:
            self._let_go()

    def snapshot(self) -> Snapshot:
        return Contents(self._job)

    def renew(self, job: Job) -> None:
        self._job = job
        self._shipment.renew(job)
        if self._start == "nursery" and self._is_built and self._held is None:
            from stoker.workers.processes.nursery import Nursery

            self._held = Nursery.shared()

    def free(self) -> None:
        self._shipment.free()
        self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def _launcher(self, shipment: Shipment) -> Launcher:
        if self._start == "spawn":
            from stoker.workers.processes.spawning import spawning

            return spawning(shipment, self._environments)
        from stoker.workers.processes.nursery import NurseryLauncher

        return NurseryLauncher(shipment)
