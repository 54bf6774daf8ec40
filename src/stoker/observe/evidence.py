"""What a diagnosis goes by: shares of the time once workers were up, worked out of the figures of a run."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from stoker.observe.core_use import CoreUse
from stoker.observe.forecast import SMALL_SHARE, Forecast
from stoker.observe.what_if import Arrangement, Durations

if TYPE_CHECKING:
    from stoker.observe.distribution import Distribution
    from stoker.observe.stats import Stats

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
    """Shares, in words that the rules use. Times are in seconds, once workers were up.

    Args:
        stats: The figures of the run.
    """

    def __init__(self, stats: Stats) -> None:
        self.stats, self.setup, self.stations = stats, stats.setup, stats.stations
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
        return self.forecast.now() < SMALL_SHARE

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

    @cached_property
    def cores(self) -> CoreUse:
        return CoreUse(self.stats, self.run, self.busy)

    @cached_property
    def forecast(self) -> Forecast:
        now = Arrangement(max(self.stats.workers, 1), self.setup.prefetch, self.setup.in_order)
        return Forecast(self._durations(), now, self.cores.count, self.wait if self.stats.workers else None)

    def _durations(self) -> Durations:
        spent = {name: station.spent for name, station in self.stations.items()}
        units = max(spent["fetch"].count, spent["write"].count, 1)
        batches = max(spent["wait"].count, 1)
        own, consumer_cpu = self.own, self.stats.processors.consumer_cpu
        if not self.stats.workers:  # what it makes itself, workers would make instead
            own, consumer_cpu = spent["move"].total, max(consumer_cpu - self.stats.cpu, 0.0)
        if self.tail.units and self.is_of_start:
            spent[self.tail.station] = spent[self.tail.station].cut(_long(spent[self.tail.station]))
        return Durations(
            spent["fetch"],
            spent["write"],
            spent["step"],
            batches / units,
            own / batches,
            self.cores.computing,
            min(consumer_cpu / self.cores.seen, 1.0),
            spent["move"].mean if self.setup.on_device else 0.0,
            self.setup.on_device,
        )


def _long(durations: Distribution) -> float:
    """A batch that took longer than so many seconds is a slow one."""
    return max(_MUCH_LONGER * durations.p50, _NOTICEABLE_S)
