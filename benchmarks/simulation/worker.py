"""A simulated worker: what has reached it is made, one run after the other, and sent back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.simulation.assumptions import Service
from benchmarks.simulation.calendar import Calendar
from benchmarks.simulation.cluster import Node
from stoker.memory import Packed
from stoker.plan import Plan
from stoker.workers import Answer, Failed, Made, Request, Timing


@dataclass(frozen=True)
class Job:
    """What workers do: which batches there are, how long each takes, and how many bytes a sample has."""

    plan: Plan
    service: Service
    sample_bytes: int


@dataclass(frozen=True)
class Result:
    """A run that was made, on its way to the consumer."""

    answer: Answer
    nbytes: int


class SimulatedWorker:
    """From when it was asked for until it is lost. Another one then takes its number.

    Args:
        number: Its number.
        calendar: Of the simulation.
        job: What it does.
        came_up: Called when it is up.
        made: Called with each result.
        died: Called when it is dead, which nobody knows yet.
        start_s: How long it takes to come up.
    """

    def __init__(
        self,
        number: int,
        calendar: Calendar,
        job: Job,
        *,
        start_s: float,
        came_up: Callable[[SimulatedWorker], object],
        made: Callable[[SimulatedWorker, Result], object],
        died: Callable[[SimulatedWorker], object],
    ) -> None:
        self.number = number
        self.node: Node | None = None
        self.is_up = self.is_dead = False
        self.is_lost = False  # the consumer knows it
        self.busy_s = 0.0
        self.waiting: deque[Request] = deque()  # with the consumer: they can be recalled
        self.in_flight: deque[Request] = deque()  # on their way to it, or there, or on their way back
        self.sent_at: deque[float] = deque()  # when each of these was sent, or the one before it came back
        self.took_s = 0.0  # for the last call
        self._on_its_way: deque[Request] = deque()  # to it
        self._queue: deque[Request] = deque()  # that have reached it; the first one is being made
        self._calendar, self._job, self._start_s = calendar, job, start_s
        self._came_up, self._made, self._died = came_up, made, died

    def move_in(self, node: Node) -> None:
        self.node = node
        self._calendar.after(self._start_s, self._come_up)

    def die(self) -> None:
        self.is_dead = True
        self._died(self)

    def expect(self, request: Request) -> None:
        """It was sent to it."""
        self.in_flight.append(request)
        self.sent_at.append(self._calendar.now)
        self._on_its_way.append(request)

    def receive(self, request: Request) -> None:
        """It has come, unless it was taken back."""
        if self.is_dead or request not in self._on_its_way:
            return
        self._on_its_way.remove(request)
        self._queue.append(request)
        if len(self._queue) == 1:
            self._begin()

    def take_back(self) -> int | None:
        """The ticket of the last request that it has not begun, if there is one."""
        if self._on_its_way:
            self._on_its_way.pop()
        elif len(self._queue) > 1:
            self._queue.pop()
        else:
            return None
        self.sent_at.pop()
        return self.in_flight.pop().ticket

    def _come_up(self) -> None:
        if not self.is_dead:
            self.is_up = True
            self._came_up(self)

    def _begin(self) -> None:
        assert self.node is not None
        run, job = self._queue[0].run, self._job
        results: list[Made | Failed] = []
        began = at = self._calendar.now
        nbytes = 0
        for position in run.positions:
            batch = job.plan.batch(run.epoch, position)
            samples = batch.stop - batch.start
            begin, at = _ns(at), at + job.service(batch) * self.node.slowness
            timing = Timing(begin, begin, _ns(at), _ns(at), _ns(at))
            results.append(Made(Packed(batch.start, samples * job.sample_bytes, 0, 0), samples, (), (), timing))
            nbytes += samples * job.sample_bytes
        self._calendar.at(at, lambda: self._finish(results, nbytes, at - began))

    def _finish(self, results: list[Made | Failed], nbytes: int, seconds: float) -> None:
        if self.is_dead:
            return
        self.busy_s += seconds
        request = self._queue.popleft()
        if self._queue:
            self._begin()
        self._made(self, Result(Answer(self.number, request.ticket, request.slot, results), nbytes))


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
