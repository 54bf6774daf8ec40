"""Figures of a run, and who waited for whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from stoker.observe.diagnosis import diagnose
from stoker.observe.processors import Processors
from stoker.observe.recording import SlowBatch, Station
from stoker.observe.setup import Setup
from stoker.observe.slow_samples import SlowSampleStats


@dataclass(frozen=True)
class WorkerStats:
    """What one worker has done, as far as its batches were delivered. Times are in seconds, as in ``Stats``.

    ``calls``: samples that ``dataset[i]`` was called for; a store had the others. ``cpu``: processor time, of all its
    threads where it is a process. ``node``: the machine of a Ray cluster that it is on, or was last known to be on;
    empty for this machine.
    """

    batches: int = 0
    samples: int = 0
    fetching: float = 0.0
    writing: float = 0.0
    idling: float = 0.0
    transferring: float = 0.0
    node: str = ""
    calls: int = 0
    cpu: float = 0.0


@dataclass(frozen=True, repr=False)
class Stats:
    """What a loader has done since it was started. Times are in seconds.

    Attributes:
        batches: Batches delivered.
        samples: Samples in them.
        skipped: Samples left out by ``on_error="skip"`` or ``"quarantine"``.
        replaced: Samples that failed, and gave their place to another by ``on_error="replace"``.
        retries: How often something was tried again, by ``retry``.
        nbytes: Bytes of arrays delivered.
        workers: Number of workers, at this moment where they come and go; 0 inline.
        elapsed: From the first request for a batch to the last delivery.
        starting: Part of it until workers were up and the first batch was begun: processes, imports, the dataset.
        waited: Part of it in which the consumer was blocked, waiting for a batch; includes ``starting``.
        fetching: Spent in ``dataset[i]``, over all workers.
        writing: Spent collating and writing into slots, over all workers.
        idling: Spent waiting for a request, over all workers.
        transferring: Spent by batches on their way here from workers on Ray, over all workers: in the object store, in
            the network, and being copied. 0 for workers of this machine.
        moving: Spent in ``to`` and on the way to the device; ahead of the consumer where there is a device.
        by_worker: The same, worker by worker.
        units_under_way: Units of work (batches, a few small ones together, or items) that workers have or have done,
            and that were not delivered yet; at this moment, as all that follows.
        workers_busy: Workers that have something to do.
        slots: Blocks of shared memory, each of which holds the batches of one unit; free ones included.
        slots_held: Those that the consumer holds, with a batch or a part of it.
        deaths: Workers that died and were replaced, since they were started.
        calls: Samples that ``dataset[i]`` was called for; a cache or rotation had the others.
        cpu: Processor time that workers took, over all of them.
        waiting: Part of ``elapsed`` that the consumer spent in ``next()``: ``waited``, opening batches and, where there
            is no device, ``moving``.
        stations: The places where time goes, by name: how long each batch took there, and how much of that passed
            while the consumer waited. See ``Station``.
        slowest: The batches that took longest to make.
        slow_samples: Samples that took much longer than others of their batch, where ``dataset[i]`` is called for one
            at a time and takes longer than 50 µs, and there is no store.
        slots_made: The most slots that there were at any time.
        slots_filled: The most of them that had a batch for you in them at any time, or were being written into.
        setup: How the loader was told to work.
        processors: What the operating system says of cores, and of who waited for one.
    """

    batches: int
    samples: int
    skipped: int
    nbytes: int
    workers: int
    elapsed: float
    waited: float
    fetching: float
    writing: float
    idling: float
    moving: float
    by_worker: tuple[WorkerStats, ...]
    starting: float = 0.0
    units_under_way: int = 0
    workers_busy: int = 0
    slots: int = 0
    slots_held: int = 0
    deaths: int = 0
    transferring: float = 0.0
    calls: int = 0
    cpu: float = 0.0
    waiting: float = 0.0
    stations: dict[str, Station] = field(default_factory=dict)
    slowest: tuple[SlowBatch, ...] = ()
    slots_made: int = 0
    setup: Setup = field(default_factory=Setup)
    processors: Processors = field(default_factory=Processors)
    replaced: int = 0
    retries: int = 0
    slow_samples: SlowSampleStats = field(default_factory=SlowSampleStats)
    slots_filled: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All of it, and the diagnosis, as JSON can hold it."""
        return asdict(self) | {"samples_per_second": self.samples_per_second, "diagnosis": self.diagnosis}

    def to_text(self) -> str:
        """The sentence, and the table, as ``report()`` prints them."""
        from stoker.observe.report import as_text

        return as_text(self)

    def report(self) -> None:
        """Prints where the time went: the sentence first, then a table of stations and workers."""
        from stoker.observe.report import show  # when used: rich takes longer to import than all of stoker

        show(self)

    def __repr__(self) -> str:
        times = f"{self.elapsed:.3g} s, of which starting {self.starting:.3g} s and waited {self.waited:.3g} s"
        left_out = (
            f"{self.skipped} skipped, " if self.skipped else f"{self.replaced} replaced, " if self.replaced else ""
        )
        return (
            f"Stats({self.batches} batches, {self.samples} samples, {left_out}{self.nbytes} bytes, "
            f"{self.workers} workers, {times})"
        )

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.elapsed if self.elapsed else 0.0

    @property
    def diagnosis(self) -> str:
        """A sentence or two: who waited for whom, and what would help. ``stoker.diagnose`` gives its parts."""
        return diagnose(self).sentence
