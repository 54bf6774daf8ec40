"""The meter: is told of each batch that goes to the consumer, and says what came of it all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import get_native_id
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

from stoker.engine import Delivery, Usage
from stoker.observe.processors import ProcessorWatch
from stoker.observe.recording import NOBODY, Column, Recording, Row, pack
from stoker.observe.setup import Setup
from stoker.observe.slow_samples import SlowSampleCount
from stoker.observe.stats import Stats, WorkerStats

if TYPE_CHECKING:
    from stoker.workers import Death, Made

_NOTHING = Usage()  # is under way: it has not been started, or was closed
_DEATHS = 1000  # that are kept, for the trace


class WorkerDeath(NamedTuple):
    """A worker has died, at that time in nanoseconds of ``perf_counter_ns``."""

    time: int
    worker: int
    cause: str


class Meter:
    """Counts at once, and measures by a ``Recording``.

    Args:
        workers: How many there are; 0 inline.
        observe: False: it only counts.
        setup: How batches are made.
    """

    def __init__(self, workers: int, *, observe: bool = True, setup: Setup | None = None) -> None:
        self._workers, self._observe = workers, observe
        self._setup = setup or Setup()
        self.asked = 0  # when the consumer asked for the next batch, or the last one that it has
        self._began = self._ended = 0
        self._batches = self._samples = self._skipped = self._replaced = self._nbytes = self._retries = 0
        self._waited = self._moving = self._starting = 0
        self._recording = Recording(max(workers, 1))
        self.deaths: deque[WorkerDeath] = deque(maxlen=_DEATHS)
        self._nodes: tuple[str, ...] = ("",) * max(workers, 1)  # as they were last known
        self._processors = ProcessorWatch(has_threads=self._setup.shares_interpreter)
        self._slow_samples = SlowSampleCount()
        self._slots = self._filled = 0  # the most that there were
        self._deaths = 0
        self._up: int | None = None  # where workers come and go: how many there were, as last known

    def ask(self) -> None:
        """The consumer asks for a batch."""
        self.asked = perf_counter_ns()
        if not self._began:
            self._processors.begin(get_native_id())
            self._began = self.asked

    def handed(self, samples: int, moving: int = 0) -> None:
        """A batch of so many samples goes to the consumer, and no worker's work is told with it."""
        self._batches += 1
        self._samples += samples
        self._moving += moving
        self._ended = now = perf_counter_ns()
        if self._observe:
            cut = now - moving
            self._recording.add(
                pack(NOBODY, 0, 0, 0, 0, 0, 0, cut, cut, cut, cut, cut, self.asked, 0, moving, now, now)
            )

    def delivered(self, delivery: Delivery, made: Made, handed: int) -> None:
        """A worker has made that: a batch, or what many are cut of. ``handed``: samples of it that go to the consumer
        at once, in a batch."""
        timing, nbytes, waited, moving = made.timing, made.packed.nbytes, delivery.waited, delivery.moving
        now = perf_counter_ns()
        if not self._ended and self._workers:  # the first batch: what it took beyond its own making was start-up
            waited = max(waited, now - self.asked)
            self._starting = max(waited - (timing.written - timing.began) - moving, 0)
        if handed:
            self._batches += 1
            self._samples += handed
        self._nbytes += nbytes
        self._retries += made.retries
        self._waited += waited
        self._moving += moving
        self._ended = now
        if self._observe:
            epoch, _, _, position = delivery.batch
            times = self.asked, waited, moving, delivery.moved, now
            if made.slow is not None:
                self._slow_samples.add(made.slow)
            self._recording.add(
                pack(delivery.worker, epoch, position, made.samples, made.calls, nbytes, made.cpu, *timing, *times)
            )

    def died(self, death: Death) -> None:
        """A worker has died, and will be replaced."""
        self._deaths += 1
        self.deaths.append(WorkerDeath(perf_counter_ns(), death.worker, death.cause))

    def skipped(self, count: int, *, replaced: bool = False) -> None:
        """So many samples failed, and were left out or replaced."""
        if replaced:
            self._replaced += count
        else:
            self._skipped += count

    def recent(self, most: int | None = None) -> list[Row]:
        """The last few thousand batches, or so many of them, as they were. From any thread."""
        return self._recording.recent if most is None else self._recording.last(most)

    def keep(self) -> list[Column]:
        """See ``Recording.keep``."""
        return self._recording.keep()

    def drop(self, kept: list[Column]) -> None:
        """See ``Recording.drop``."""
        self._recording.drop(kept)

    @property
    def batches(self) -> int:
        """That were delivered."""
        return self._batches

    @property
    def waited(self) -> float:
        """Seconds in which the consumer was blocked."""
        return self._waited / 1e9

    @property
    def is_observing(self) -> bool:
        return self._observe

    def worker_names(self) -> list[str]:
        """As a trace shows them, with the machine that they are on if it is not this one."""
        if not self._workers:
            return ["inline"]
        return [f"worker {k}" + (f" on {node}" if node else "") for k, node in enumerate(self._nodes)]

    def look(self, usage: Usage, pids: Iterable[int]) -> None:
        """What can be seen only while there are workers: to be called before they end."""
        self._nodes = usage.nodes or self._nodes
        self._up = self._up if usage.up is None else usage.up
        self._slots, self._filled = max(self._slots, usage.slots), max(self._filled, usage.filled)
        if usage is not _NOTHING:  # after the end, what the consumer's thread does has nothing to do with it
            self._processors.look(pids)

    def stats(self, usage: Usage = _NOTHING, pids: Iterable[int] = ()) -> Stats:
        """From any thread."""
        self._recording.fold()
        self.look(usage, pids)
        sums = self._recording.sums()
        stations = self._recording.stations()
        total = {name: sum(own[name] for own in sums) for name in sums[0]}
        return Stats(
            batches=self._batches,
            samples=self._samples,
            skipped=self._skipped,
            replaced=self._replaced,
            retries=self._retries,
            nbytes=self._nbytes,
            workers=self._workers if self._up is None else self._up,
            elapsed=max(self._ended - self._began, 0) / 1e9,
            starting=self._starting / 1e9,
            waited=self._waited / 1e9,
            fetching=total["fetch"] / 1e9,
            writing=total["write"] / 1e9,
            idling=total["idle"] / 1e9,
            moving=self._moving / 1e9,
            by_worker=tuple(_of_worker(own, node) for own, node in zip(sums, self._nodes, strict=True))[
                : self._seen(sums)
            ],
            transferring=total["transfer"] / 1e9,
            units_under_way=usage.runs,
            workers_busy=usage.workers,
            slots=usage.slots,
            slots_held=usage.held,
            deaths=self._deaths,
            calls=total["made"],
            cpu=total["cpu"] / 1e9,
            waiting=stations["wait"].spent.total,
            stations=stations,
            slowest=self._recording.slowest(),
            slow_samples=self._slow_samples.stats(),
            slots_made=self._slots,
            slots_filled=self._filled,
            setup=self._setup,
            processors=self._processors.last,
        )

    def _seen(self, sums: list[dict[str, int]]) -> int:
        """Workers up to the last one that has done anything, where they come and go; else all."""
        if self._up is None:
            return len(sums)
        return max([self._up, *(number for number, own in enumerate(sums, 1) if own["batches"])])


def _of_worker(own: dict[str, int], node: str) -> WorkerStats:
    return WorkerStats(
        batches=own["batches"],
        samples=own["samples"],
        fetching=own["fetch"] / 1e9,
        writing=own["write"] / 1e9,
        idling=own["idle"] / 1e9,
        transferring=own["transfer"] / 1e9,
        node=node,
        calls=own["made"],
        cpu=own["cpu"] / 1e9,
    )
