"""A scenario: who works where, on what, and what goes wrong; and what came of it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from benchmarks.simulation.assumptions import ON_RAY, Assumptions, Service
from benchmarks.simulation.calendar import Calendar
from benchmarks.simulation.cluster import Cluster
from benchmarks.simulation.consumer import Consumer, settings_of
from benchmarks.simulation.worker import Job
from stoker import Ray
from stoker.plan import Plan
from stoker.workers import Workers

WORKERS, NODES, LINK, RECEIVER, LOOP = "workers", "nodes' links", "consumer's link", "receiver", "consumer's loop"
_BLOCK = 50  # batches, over which the time of Stoker's own code is averaged


@dataclass(frozen=True)
class Failure:
    """A node is cut off at a time, in seconds, and may come back after so many more."""

    node: int
    at: float
    back_after: float | None = None


@dataclass(frozen=True)
class Scenario:
    """Some consumers, each a shard of one plan, with workers of their own on nodes that all share.

    Attributes:
        plans: One for each consumer.
        service: How long a batch takes a worker.
        batches: That each consumer takes.
        workers: Of each consumer.
        nodes: How many there are,
        cores: with so many cores each. None: as many as all workers need, evenly.
        sample_bytes: The size of a sample.
        step_s: What a consumer does with a batch takes so long.
        skip: Batches that are left out of all measurements, at the beginning.
    """

    plans: Sequence[Plan]
    service: Service
    batches: int
    workers: Workers = field(default_factory=lambda: Ray(4))
    nodes: int = 1
    cores: int | None = None
    sample_bytes: int = 1000
    step_s: float = 0.0
    prefetch: int = 2
    in_order: bool = True
    assumptions: Assumptions = ON_RAY
    failures: Sequence[Failure] = ()
    slow_nodes: Sequence[tuple[int, float]] = ()  # node, and how many times as long anything takes there
    skip: int = 0


class Outcome:
    """A simulation that is over.

    Attributes:
        consumers: As they are in the end.
        cluster: The same.
        seconds: Of simulated time.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        calendar = Calendar()
        count = scenario.workers.count
        cores = scenario.cores or -(-count * len(scenario.plans) // scenario.nodes)
        self.cluster = Cluster(calendar, scenario.nodes, cores, scenario.assumptions)
        for node, factor in scenario.slow_nodes:
            self.cluster.nodes[node].slowness = factor
        for failure in scenario.failures:
            self.cluster.fail(failure.node, failure.at, back_after=failure.back_after)
        settings = settings_of(scenario.workers, prefetch=scenario.prefetch, in_order=scenario.in_order)
        self.consumers = [
            Consumer(
                self.cluster,
                Job(plan, scenario.service, scenario.sample_bytes),
                settings,
                scenario.assumptions,
                step_s=scenario.step_s,
                batches=scenario.batches,
            )
            for plan in scenario.plans
        ]
        self._busy_before: dict[str, float] = {}
        self._run(calendar)
        self.seconds = calendar.now

    def _run(self, calendar: Calendar) -> None:
        first, left = self.consumers[0], len(self.consumers)

        def note(consumer: Consumer) -> None:
            nonlocal left
            left -= consumer.is_done
            if consumer is first and len(first.times) == self._scenario.skip + 1:
                self._busy_before = self._busy()

        for consumer in self.consumers:
            consumer.on_batch = note
            consumer.start()
        with _quiet():
            calendar.run(lambda: left == 0)
        if left:
            raise AssertionError(f"{left} consumers wait for ever, at {calendar.now:.1f} s of simulated time")

    def _busy(self) -> dict[str, float]:
        """Seconds for which each thing that the first consumer needs has been busy."""
        scenario, consumer = self._scenario, self.consumers[0]
        backend, nodes = consumer.backend, self.cluster.nodes
        link, receiver = (station.busy_s for station in backend.stations.values())
        working = backend.worked_s + sum(worker.busy_s for worker in backend.workers.values())
        return {
            WORKERS: working / scenario.workers.count,
            NODES: max(node.link.busy_s for node in nodes),
            LINK: link,
            RECEIVER: receiver,
            LOOP: consumer.busy_s,
        }

    @property
    def batches_per_s(self) -> float:
        """Of the first consumer, once it has taken ``skip``."""
        times, skip = self.consumers[0].times, self._scenario.skip
        return (len(times) - 1 - skip) / (times[-1] - times[skip])

    def utilization(self) -> dict[str, float]:
        """How busy each thing was, as a share of the time."""
        times = self.consumers[0].times
        seconds = times[-1] - times[self._scenario.skip]
        return {name: (busy - self._busy_before[name]) / seconds for name, busy in self._busy().items()}

    def engine_us(self) -> float:
        """Microseconds of real time that Stoker's own code took for a batch, on this machine."""
        ns = self.consumers[0].engine_ns[self._scenario.skip :: _BLOCK]
        return median((after - before) / _BLOCK / 1e3 for before, after in itertools.pairwise(ns))

    def slot_bytes(self) -> int:
        """Of all slots of the first consumer."""
        return sum(self.consumers[0].transport.slot_bytes.values())

    def stored_bytes(self) -> int:
        """At most at any time in the object store of a node."""
        return max(node.most_stored for node in self.cluster.nodes)

    def longest_wait(self) -> float:
        """The longest time between two batches of the first consumer, in seconds."""
        times = self.consumers[0].times[self._scenario.skip :]
        return max(after - before for before, after in itertools.pairwise(times))

    def deaths(self) -> int:
        return sum(len(consumer.deaths) for consumer in self.consumers)


def simulate(scenario: Scenario) -> Outcome:
    """Runs it to its end."""
    return Outcome(scenario)


@contextmanager
def _quiet() -> Iterator[None]:
    """Deaths are logged by Stoker's own code, thousands of them here."""
    log = logging.getLogger("stoker")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
