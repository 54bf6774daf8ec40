"""A site: where workers of one job can be started, as often as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from stoker.workers.backend import Backend
from stoker.workers.snapshot import Snapshot
from stoker.workers.transport import SlotTransport
from stoker.workers.worker import Job


class Site(Protocol):
    """Where a backend can be built, as often as it takes, once its job is packed."""

    def pack(self) -> None:
        """To be called before ``build``: puts the job where workers can get at it, which may take long."""

    def build(self, transport: SlotTransport, store: int) -> Backend:
        """``transport``: that its results come by. ``store``: a descriptor of the job's store, if that has a file."""

    def snapshot(self) -> Snapshot | None:
        """What the job is like now, for workers that were just started; None where they always see it as it is."""

    def renew(self, job: Job) -> None:
        """The next backend is for this job, as it will be then. The last one may be open still."""

    def free(self) -> None:
        """Lets go of the job."""


class OwnSite:
    """For workers that need no pickled job: inline, threads, and forks of this process.

    Args:
        job: What to do.
        build: Makes a backend for a job.
        look: Makes a snapshot of a job; None where workers always see it as it is.
    """

    def __init__(
        self,
        job: Job,
        build: Callable[[Job, SlotTransport, int], Backend],
        look: Callable[[Job], Snapshot] | None = None,
    ) -> None:
        self._job, self._build, self._look = job, build, look

    def pack(self) -> None:
        pass

    def build(self, transport: SlotTransport, store: int) -> Backend:
        return self._build(self._job, transport, store)

    def snapshot(self) -> Snapshot | None:
        return None if self._look is None else self._look(self._job)

    def renew(self, job: Job) -> None:
        self._job = job

    def free(self) -> None:
        pass
