"""Workers and memory that do just what a test says, for a driver that is real."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stoker.agenda.indexed import IndexedUnits
from stoker.engine import Driver, Machine
from stoker.interrupts import Hand
from stoker.memory import Packed
from stoker.plan import Plan, runs
from stoker.workers import Answer, Death, Failed, Made, Request, Timing


class FakeBackend:
    """Workers that answer when they are told to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.started: list[int] = []
        self.queues: dict[int, list[Request]] = {}
        self.refusal: Exception | None = None
        self.when_waited: list[Any] = []  # what to do in each wait: a function
        self._news: list[Answer | Death] = []

    def start(self, worker: int) -> None:
        self.started.append(worker)
        self.queues[worker] = []

    def send(self, worker: int, request: Request) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.queues[worker].append(request)

    def recall(self, worker: int) -> int | None:
        queue = self.queues[worker]
        return queue.pop().ticket if len(queue) > 1 else None

    def wait(self, timeout: float | None) -> None:
        assert self.when_waited, "it would wait for ever"
        self.when_waited.pop(0)()

    def news(self) -> list[Answer | Death]:
        news, self._news = self._news, []
        return news

    def wake(self) -> None:
        self.calls.append("wake")

    def progress(self, worker: int) -> int:
        return 0

    def end(self, worker: int, *, at_once: bool) -> None:
        self.calls.append(f"end {worker}")

    def pids(self) -> list[int]:
        return [100 + worker for worker in self.queues]

    def length(self) -> int:
        return 0

    def close(self) -> None:
        self.calls.append("backend closed")

    # What a test has its workers do

    def answers(self, worker: int, result: Made | Failed | None = None) -> None:
        """To its oldest request."""
        request = self.queues[worker].pop(0)
        results: list[Made | Failed] = [
            result or Made(Packed(start, 0, 0, 0), 1, (), (), Timing(0, 0, 0, 0, 0)) for start in request.run.positions
        ]
        self._news.append(Answer(worker, request.ticket, request.slot, results))

    def says(self, news: Answer | Death) -> None:
        self._news.append(news)


class FakeTransport:
    """Batches are (slot, position), and are held until a test lets go of them."""

    def __init__(self, calls: list[str]) -> None:
        self.held_allowed = 100
        self.arrivals: list[int] = []
        self.dropped: list[int] = []
        self.let_go_of: list[int] = []
        self.error: Exception | None = None
        self._calls = calls

    def arrived(self, slot: int) -> None:
        self.arrivals.append(slot)

    def lend(self, slot: int, batches: int) -> None:
        pass

    def open(self, slot: int, packed: Packed) -> tuple[Any, Any]:
        if self.error is not None:
            raise self.error
        return (slot, packed.offset), SimpleNamespace(slot=-1)

    def drop(self, slot: int) -> None:
        self.dropped.append(slot)

    def free(self) -> list[int]:
        freed, self.let_go_of = self.let_go_of, []
        return freed

    def close(self) -> None:
        self._calls.append("transport closed")


class OneEpoch(IndexedUnits):
    """The batches of epoch 0, and no others."""

    def runs(self, size: Any) -> Any:
        return runs(self._plan.batches(0), self._plan.stride, size)


class Bench:
    """A driver, and what it works with. Batches have one sample each, so that position, batch and sample are one."""

    def __init__(self, workers: int = 2, samples: int = 10, prefetch: int = 2, **options: Any) -> None:
        self.backend = FakeBackend()
        self.transport = FakeTransport(self.backend.calls)
        machine = Machine(workers=workers, window=workers * prefetch, deaths_allowed=2)
        self.driver = Driver(machine, self.backend, self.transport, deaths_allowed=2, **options)
        self.plan = Plan(samples, 1)

    def begin(self) -> None:
        self.driver.seek(OneEpoch(self.plan, lambda plan: 1))

    def take(self) -> Any:
        hand: Hand[Any] = Hand()
        self.driver.take(hand)
        return hand.held

    def sent(self) -> dict[int, list[int]]:
        """The positions that each worker has."""
        return {worker: [one.run.position for one in queue] for worker, queue in self.backend.queues.items()}
