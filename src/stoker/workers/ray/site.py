"""Where workers of one job can be started on a cluster: connects to it, and puts the job into its object store."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from stoker.workers.backend import Backend
from stoker.workers.packing import pack
from stoker.workers.processes.sharing import reduce_memmap
from stoker.workers.ray.connection import Connection, Session
from stoker.workers.ray.placing import Placing
from stoker.workers.ray.setup import Setup
from stoker.workers.site import Site
from stoker.workers.snapshot import Contents, Snapshot
from stoker.workers.transport import SlotTransport
from stoker.workers.worker import Job


def prepare(placing: Placing, address: str, job: Job, local: Site | None, local_workers: int) -> Site:
    """``local``: where worker processes of this machine are started, if there are any beside the actors."""
    if find_spec("ray") is None:
        raise ModuleNotFoundError("workers=stoker.Ray(...): Ray is not installed. Run pip install 'stoker[ray]'")
    connection = Connection(address, placing.needs(), placing.start_timeout)
    return RaySite(placing, connection, job, local, local_workers)


class RaySite:
    """Packs the job when the loader is made, so that what cannot travel is said early, and again when it changed."""

    def __init__(
        self, placing: Placing, connection: Connection, job: Job, local: Site | None, local_workers: int
    ) -> None:
        self._placing, self._connection, self._job = placing, connection, job
        self._local, self._local_workers = local, local_workers
        self._setup: Any = None  # Ray's reference to it,
        self._session: Session | None = None  # in which it was put there
        _pack(job)

    def pack(self) -> None:
        import ray

        if self._local is not None:
            self._local.pack()
        session = self._connection.open()
        if self._setup is None or session != self._session:
            self._setup, self._session = ray.put(Setup.of(_pack(self._job))), session

    def build(self, transport: SlotTransport, store: int) -> Backend:
        from stoker.workers.ray.backend import RayBackend

        if self._local is None:
            return RayBackend(self._placing, self._setup, transport)
        from stoker.workers.ray.mixed import MixedBackend

        def actors(ring: Callable[[], None]) -> RayBackend:
            return RayBackend(self._placing, self._setup, transport, ring)

        return MixedBackend(self._local.build(transport, store), actors, self._local_workers)

    def snapshot(self) -> Snapshot:
        return Contents(self._job)

    def renew(self, job: Job) -> None:
        self._job, self._setup = job, None
        if self._local is not None:
            self._local.renew(job)

    def free(self) -> None:
        self._setup = None
        if self._local is not None:
            self._local.free()
        self._connection.close()


def _pack(job: Job) -> Any:
    return pack(job, reduce_memmap, to="workers on Ray")
