"""Worker processes whose number follows what ``Tuning`` says, while batches flow."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns

from stoker.memory import Slots
from stoker.workers.auto.crew import Crew
from stoker.workers.auto.headroom import Headroom
from stoker.workers.auto.period import Period
from stoker.workers.auto.tuning import Tuning
from stoker.workers.backend import Allowance, Answer, Death, Departure, News, Request
from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.run_queue import run_delay

_SETTLING = 2  # answers of each worker after a change, which are not measured


class ElasticBackend:
    """A backend of processes that come and go.

    Args:
        processes: Fresh.
        tuning: Says how many there should be.
        slots: That results lie in.
        consumers: Processes of this machine that share its memory.
    """

    def __init__(self, processes: ProcessesBackend, tuning: Tuning, slots: Slots, consumers: int) -> None:
        self._processes, self._tuning, self._slots = processes, tuning, slots
        self._crew = Crew(processes, tuning)
        self._period, self._headroom = Period(lambda: run_delay(self.pids())), Headroom(self.pids, consumers)
        self._ahead = tuning.ahead

    def start(self, worker: int) -> None:
        self._crew.start(worker)

    def send(self, worker: int, request: Request) -> None:
        self._processes.send(worker, request)
        self._crew.sent(worker)

    def recall(self, worker: int) -> int | None:
        ticket = self._processes.recall(worker)
        if ticket is not None:
            self._crew.answered(worker)
        return ticket

    def wait(self, timeout: float | None) -> None:
        began, has_idle_worker = perf_counter_ns(), self._crew.has_idle_worker
        try:
            self._processes.wait(timeout)
        finally:
            self._period.waited(perf_counter_ns() - began, has_idle_worker=has_idle_worker)

    def news(self) -> Sequence[News]:
        heard = [one for one in self._processes.news() if self._is_news(one)]
        self._crew.welcome()
        self._look()
        changes = self._follow([one.worker for one in heard])
        # A departure comes before all else: the engine would send the worker something in answer to the rest.
        departures = [one for one in changes if isinstance(one, Departure)]
        return [*departures, *heard, *(one for one in changes if not isinstance(one, Departure))]

    def wake(self) -> None:
        self._processes.wake()

    def progress(self, worker: int) -> int:
        return self._processes.progress(worker)

    def end(self, worker: int, *, at_once: bool) -> None:
        self._processes.end(worker, at_once=at_once)

    def pids(self) -> list[int]:
        return self._processes.pids(self._crew.leaving)

    def length(self) -> int | Death | None:
        return self._processes.length()

    def close(self) -> None:
        self._processes.close()

    def _is_news(self, one: Answer | Death) -> bool:
        if isinstance(one, Death):
            return self._crew.died(one)
        self._crew.answered(one.worker)
        self._headroom.used(one.slot, self._slots.get(one.slot).capacity)
        if one.worker in self._crew.up:
            self._period.answered(one, perf_counter_ns())
        return True

    def _look(self) -> None:
        """Nothing is measured before all are there that were called for."""
        if not self._crew.coming:
            measured = self._period.look(perf_counter_ns(), len(self._crew.up), self._headroom)
            if measured is not None:
                self._tuning.note(measured)

    def _follow(self, answering: list[int]) -> list[News]:
        """Does what the tuning says now, and gives what the engine is to be told of it."""
        changes: list[News] = [*self._crew.follow(answering)]
        if self._ahead != self._tuning.ahead:
            self._ahead = self._tuning.ahead
            changes.append(Allowance(self._ahead))
        if changes:
            self._period.restart(_SETTLING * len(self._crew.up))
        return changes
