"""Where worker processes of one job can be started, with the number of them tuned while they work."""

from __future__ import annotations

from stoker.workers.auto.backend import ElasticBackend
from stoker.workers.auto.tuning import Tuning
from stoker.workers.backend import Backend
from stoker.workers.processes import ProcessesBackend, ShippedSite
from stoker.workers.snapshot import Snapshot
from stoker.workers.transport import SlotTransport
from stoker.workers.worker import Job


class ElasticSite:
    """A site of processes that come and go.

    Args:
        job: What to do.
        first: Workers at the start.
        least: There are never fewer,
        most: and never more.
        cores: That they may use.
        most_ahead: How many times the usual number of batches may be ahead for each of them, at most.
        consumers: Processes of this machine that share its memory.
    """

    def __init__(
        self, job: Job, *, first: int, least: int, most: int, cores: int, most_ahead: int, consumers: int
    ) -> None:
        self._processes, self._consumers = ShippedSite("nursery", job, ()), consumers
        self._limits = {"first": first, "least": least, "most": most, "cores": cores, "most_ahead": most_ahead}

    def pack(self) -> None:
        self._processes.pack()

    def build(self, transport: SlotTransport, store: int) -> Backend:
        backend = self._processes.build(transport, store)
        assert isinstance(backend, ProcessesBackend)
        return ElasticBackend(backend, Tuning(**self._limits), transport.slots, self._consumers)

    def snapshot(self) -> Snapshot | None:
        return self._processes.snapshot()

    def renew(self, job: Job) -> None:
        self._processes.renew(job)

    def free(self) -> None:
        self._processes.free()
