"""A consumer: Stoker's own engine, put together as a loader does it, with simulated workers and a simulated step."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from benchmarks.simulation.assumptions import Assumptions
from benchmarks.simulation.backend import SimulatedBackend
from benchmarks.simulation.cluster import Cluster
from benchmarks.simulation.engine_clock import EngineClock
from benchmarks.simulation.transport import OpenBatch, SimulatedTransport
from benchmarks.simulation.worker import Job
from stoker.agenda.indexed import IndexedUnits
from stoker.assembly import machine_of
from stoker.engine import Delivery, Pacing
from stoker.engine.executor import Executor
from stoker.engine.messages import Asked, Released, Sought
from stoker.engine.tap import Tap
from stoker.engine.watched_workers import WatchedWorkers
from stoker.interrupts import Hand
from stoker.observe import ErrorPolicy
from stoker.plan import Cursor
from stoker.settings import Settings
from stoker.workers import Workers
from stoker.workers.backend import Death


def settings_of(workers: Workers, *, prefetch: int = 2, in_order: bool = True) -> Settings:
    """As a loader has them by default."""
    return Settings(workers, prefetch, in_order, None, 3, ErrorPolicy(), None, 0)


class Consumer:
    """Takes batches, one after the other, and spends a step's time on each.

    It does what ``engine/driver.py`` does, but where that would block, it returns, and is called again.

    Args:
        cluster: Where its workers are.
        job: What they do.
        settings: How many there are, how far ahead, in which order.
        assumptions: What everything costs.
        step_s: What the user does with a batch takes so long.
        batches: After so many it stops.
    """

    def __init__(
        self, cluster: Cluster, job: Job, settings: Settings, assumptions: Assumptions, *, step_s: float, batches: int
    ) -> None:
        traits = settings.workers.traits
        self.clock = EngineClock()
        self.transport = SimulatedTransport()
        self.backend = SimulatedBackend(cluster, job, assumptions, self.transport, self.clock, is_here=traits.is_here)
        self.machine = machine_of(settings)
        self.cursor = Cursor()
        self.times = array("d")  # when each batch was taken,
        self.starts = array("q")  # its first position,
        self.makers = array("l")  # who has made it,
        self.engine_ns = array("q")  # and how long Stoker's own code has taken until then
        self.busy_s = 0.0  # in Stoker's code, by the assumptions
        self.deaths: list[Death] = []  # of its workers
        self.on_batch: Callable[[Consumer], object] = lambda _: None
        self._tap = Tap(self.machine)
        pacing = Pacing(traits.run_seconds, traits.run_bytes)
        workers = WatchedWorkers(self.backend, None)
        self._executor = Executor(
            self.machine, self._tap, workers, self.transport, pacing, leave_out=False, on_death=self.deaths.append
        )
        self._units = IndexedUnits(job.plan, settings.longest_run)
        self._calendar, self._plan, self._assumptions = cluster.calendar, job.plan, assumptions
        self._step_s, self._batches = step_s, batches
        self._hand: Hand[Delivery] = Hand()
        self._held: OpenBatch | None = None  # by the user
        self._is_waiting = False
        self.backend.ring = self._rung

    @property
    def is_done(self) -> bool:
        return len(self.times) >= self._batches

    def start(self) -> None:
        self.clock.go_on()
        self._executor.start()
        self._executor.begin(self._units)
        self._executor.tell(Sought())
        self.clock.stop()
        self._calendar.after(0.0, self._take)

    def _take(self) -> None:
        """As ``Driver.take``: the next batch of the run at hand, or the next run."""
        if self._held is not None:
            self.transport.let_go(self._held.slot)
            self._held = None
        if not self._executor.handout.is_empty:
            self._open(self._assumptions.batch_s)
            return
        self.clock.go_on()
        for slot in self.transport.free():
            self._tap.decide(Released(slot))
        self._executor.asked = True
        self._executor.tell(Asked())
        self._hear()
        self.clock.stop()
        self._is_waiting = True
        self._look()

    def _rung(self) -> None:
        """There is news. It is not looked at while the user's step runs, as there is no thread that would."""
        if self._is_waiting:
            self.clock.go_on()
            self._hear()
            self.clock.stop()
            self._look()

    def _hear(self) -> None:
        news = self.backend.news()
        self._executor.heard(news)

    def _look(self) -> None:
        if not self._executor.handout.is_empty:
            self._is_waiting = False
            self._open(self._assumptions.run_s + self._assumptions.batch_s)
        elif self._executor.failure is not None:
            raise AssertionError("a batch was given up, and no batch kills its worker here") from (
                self._executor.failure.error
            )

    def _open(self, seconds: float) -> None:
        """Hands a batch to the user, and comes back after the step."""
        self.clock.go_on()
        self._executor.handout.open(self._units, 0, self._hand)
        delivery, self._hand.held = self._hand.held, None
        assert delivery is not None
        self.cursor.deliver(delivery.batch, self._plan)
        if self.cursor.at_end(self._plan):
            self.cursor.next_epoch()
        self.clock.stop()
        self._note(delivery)
        self.busy_s += seconds
        if not self.is_done:
            self._calendar.after(seconds + self._step_s, self._take)

    def _note(self, delivery: Delivery) -> None:
        found: OpenBatch = delivery.data
        assert found.packed.offset == delivery.batch.start, f"{delivery.batch} has the data of {found}"
        self._held = found
        self.times.append(self._calendar.now)
        self.starts.append(delivery.batch.start)
        self.makers.append(delivery.worker)
        self.engine_ns.append(self.clock.ns)
        self.on_batch(self)
