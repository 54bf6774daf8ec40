"""What a diagnosis goes by: shares of the time once workers were up, worked out of the figures of a run."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from stoker.observe.what_if import Arrangement, Pace, wait_share

if TYPE_CHECKING:
    from stoker.observe.distribution import Distribution
    from stoker.observe.stats import Stats

SMALL_SHARE = 0.05  # of the time: less waiting than this is not worth a remedy
MANY_WORKERS = 64  # more than these are not proposed

_TRUSTED = 0.15  # the model must give the wait that was measured within this, or its other figures are not told
_MUCH_LONGER = 4.0  # times the median: a batch that took that long is a slow one
_NOTICEABLE_S = 0.005  # what a scheduler may take from a worker in between
_FEW = 0.2  # of the batches: if more of them are slow, slow is what they are


class Tail(NamedTuple):
    """Units of work that took much longer than others.

    Attributes:
        excess: Seconds that they took beyond the median, together.
        units: How many there were.
        station: At which they took so long: "fetch" or "write".
    """

    excess: float
    units: int
    station: str


class Evidence:
    """Shares, in words that the rules use. Times are in seconds, once workers were up."""

    def __init__(self, stats: Stats) -> None:
        self.stats, self.setup, self.processors = stats, stats.setup, stats.processors
        self.stations = stats.stations
        self.run = max(stats.elapsed - stats.starting, 1e-9)
        self.waiting = max(stats.waiting - stats.starting, 0.0)
        self.blocked = min(max(stats.waited - stats.starting, 0.0), self.waiting)
        self.busy = max(stats.fetching + stats.writing, 1e-9)

    @property
    def wait(self) -> float:
        """The share of its time that the consumer spent in ``next()``."""
        return min(self.waiting / self.run, 1.0)

    @property
    def idle(self) -> float:
        """The share of their time that workers had nothing to do."""
        return self.stats.idling / (self.stats.idling + self.busy)

    @property
    def longest_wait(self) -> float:
        """The seconds of it."""
        return max(self.stations["wait"].spent.largest - self.stats.starting, 0.0)

    @property
    def other_wait(self) -> float:
        """The share of its time that the consumer waited, but for that once."""
        return max(self.waiting - self.longest_wait, 0.0) / self.run

    @property
    def is_fed(self) -> bool:
        """Whether it hardly waits; or waited once, for the first batch, and need not wait again."""
        if self.wait < SMALL_SHARE or not self.stats.workers:
            return self.wait < SMALL_SHARE
        if self.other_wait >= SMALL_SHARE or (self.tail.units and not self.is_of_start):
            return False
        return self._with(self.now) < SMALL_SHARE

    def during(self, station: str) -> float:
        """Seconds that passed there, over all workers, while the consumer waited."""
        return self.stations[station].while_waiting

    @property
    def busiest(self) -> str:
        """The station at which workers were most while the consumer waited: "fetch" or "write"."""
        return "write" if self.during("write") > self.during("fetch") else "fetch"

    def share_of_wait(self, station: str) -> float:
        """How many batches were there, on average, while the consumer waited."""
        return self.during(station) / max(self.waiting, 1e-9)

    def share_of_workers(self, station: str) -> float:
        """The share of the workers' time, while the consumer waited, that was spent there."""
        return self.during(station) / max(sum(map(self.during, ("fetch", "write", "idle"))), 1e-9)

    @property
    def own(self) -> float:
        """Of the wait, the seconds in which the consumer's thread itself was at work: opening batches, ``to``."""
        return self.waiting - self.blocked

    # Processors

    @property
    def cores(self) -> int:
        """That workers may use; 0: not known, as they are on other machines."""
        return self.processors.cores if self.setup.is_here else 0

    @property
    def delay(self) -> float:
        """Seconds that workers could have run while they made batches, and had no core.

        Of what they had to wait since they were started, as much as of their processor time: they imported modules too.
        """
        return self.stats.cpu * (self.processors.workers_delay or 0.0) / max(self.processors.workers_cpu, 1e-9)

    @property
    def computing(self) -> float:
        """The share of the workers' busy time in which they computed, or waited for a core to do so."""
        return min((self.stats.cpu + self.delay) / self.busy, 1.0)

    @property
    def used_cores(self) -> float:
        """Cores that workers computed on, on average."""
        return self.stats.cpu / self.run

    @property
    def wanted_cores(self) -> float:
        """Cores that workers computed on, or would have if there had been as many."""
        return (self.stats.cpu + self.delay) / self.run

    @property
    def consumer_delay(self) -> float:
        """The share of its time that the consumer's thread could have run and had no core."""
        return min((self.processors.consumer_delay or 0.0) / self._seen, 1.0)

    @property
    def _seen(self) -> float:
        """Seconds in which the consumer's thread was seen: also after its last batch, while the loader is open."""
        return max(self.run, self.processors.seconds - self.stats.starting)

    @property
    def threads(self) -> float:
        """That a worker computes with at the same time."""
        return max(self.processors.busy_threads, self.stats.cpu / self.busy)

    @cached_property
    def tail(self) -> Tail:
        return max(self._tail_at("write"), self._tail_at("fetch"))

    def _tail_at(self, station: str) -> Tail:
        making = self.stations[station].spent
        longer = _long(making)
        slow = [(upper, count) for upper, count in making.counts if upper > longer]
        units = sum(count for _, count in slow)
        if units > _FEW * self.batches_of(making.count):
            return Tail(0.0, 0, station)
        return Tail(sum((upper - making.p50) * count for upper, count in slow), units, station)

    def batches_of(self, units: int) -> int:
        """How many batches there are in so many units of work, where small ones are made and taken together."""
        return round(units * max(self.stats.batches / max(self.stations["wait"].spent.count, 1), 1.0))

    @property
    def is_of_start(self) -> bool:
        """Whether slow units are the first ones of workers, and say nothing of those that follow."""
        slow = self.stats.slowest[: self.tail.units]
        return self.tail.units <= self.stats.workers and all(one.is_first for one in slow)

    @property
    def is_quick_enough(self) -> bool:
        """Whether workers make batches, on average, as quickly as the consumer could take them."""
        return self._pace.making / max(self.stats.workers, 1) < self._pace.taking

    # What if

    @property
    def now(self) -> Arrangement:
        return Arrangement(max(self.stats.workers, 1), self.setup.prefetch, self.setup.in_order)

    @cached_property
    def is_modelled(self) -> bool:
        """Whether the model gives what was measured."""
        if not self.stats.workers:  # the consumer does it all, one after the other
            return self._pace.step.count > 0
        return abs(self._with(self.now) - self.wait) <= _TRUSTED

    def what_if(self, *, workers: int = 0, prefetch: int = 0, in_order: bool | None = None) -> float | None:
        """The share of its time that the consumer would wait; None: that is not known."""
        if not self.is_modelled:
            return None
        now = self.now
        order = now.in_order if in_order is None else in_order
        return self._with(Arrangement(workers or now.workers, prefetch or now.prefetch, order))

    def workers_needed(self) -> int | None:
        """The smallest number of workers with which the consumer would hardly wait; None: none is enough, or known."""
        making, taking = self._pace.making, self._pace.taking
        if not self.is_modelled or not taking or making / taking > MANY_WORKERS:
            return None
        first, at_best = max(ceil(making / taking), 1), 1 - self._pace.batches * self._pace.step.mean / taking
        for workers in range(first, min(first + 4, MANY_WORKERS + 1)):
            if self._with(Arrangement(workers, self.setup.prefetch, self.setup.in_order)) < at_best + SMALL_SHARE:
                return workers
        return None

    def _with(self, then: Arrangement) -> float:
        return wait_share(self._pace, self.now, then, self.cores)

    @cached_property
    def _pace(self) -> Pace:
        spent = {name: station.spent for name, station in self.stations.items()}
        units = max(spent["fetch"].count, spent["write"].count, 1)
        batches = max(spent["wait"].count, 1)
        own, consumer_cpu = self.own, self.processors.consumer_cpu
        if not self.stats.workers:  # what it makes itself, workers would make instead
            own, consumer_cpu = spent["move"].total, max(consumer_cpu - self.stats.cpu, 0.0)
        if self.tail.units and self.is_of_start:
            spent[self.tail.station] = spent[self.tail.station].cut(_long(spent[self.tail.station]))
        return Pace(
            spent["fetch"],
            spent["write"],
            spent["step"],
            batches / units,
            own / batches,
            self.computing,
            min(consumer_cpu / self._seen, 1.0),
            spent["move"].mean if self.setup.on_device else 0.0,
            self.setup.on_device,
        )


def _long(durations: Distribution) -> float:
    """A batch that took longer than so many seconds is a slow one."""
    return max(_MUCH_LONGER * durations.p50, _NOTICEABLE_S)
