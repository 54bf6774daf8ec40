"""The executor: tells the machine what has happened, and carries out what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from stoker.engine import death_messages
from stoker.engine.delivery import Delivery
from stoker.engine.handout import HandOut
from stoker.engine.machine import Machine
from stoker.engine.messages import (
    Allowed,
    Arrived,
    Deliver,
    Died,
    Ended,
    Event,
    Fail,
    Finish,
    Finished,
    Instruction,
    Left,
    LogDeath,
    Offered,
    Paused,
    Recall,
    Recalled,
    Send,
    Spawn,
)
from stoker.engine.pacing import Pacing
from stoker.engine.tap import Tap
from stoker.engine.units import Units
from stoker.engine.watched_workers import WatchedWorkers
from stoker.errors import ShippingError
from stoker.plan import Run
from stoker.workers import Allowance, Answer, Arrival, Death, Departure, Failed, Made, News, Request, Transport


class Executor:
    """Stands between the machine and the world, and never waits.

    What it finds for the consumer is in the ``handout``, or is a ``failure``, or it is ``finished``.

    Args:
        machine: Fresh.
        tap: Of that machine.
        workers: That it has do things.
        transport: That their results come by.
        pacing: How many batches there are in a run.
        leave_out: Batches that are given up count as left out, and are no errors.
        on_death: Is told of each worker that has died.
    """

    def __init__(
        self,
        machine: Machine,
        tap: Tap,
        workers: WatchedWorkers,
        transport: Transport,
        pacing: Pacing,
        *,
        leave_out: bool,
        on_death: Callable[[Death], object] | None = None,
    ) -> None:
        self.units: Units | None = None
        self.handout = HandOut(transport)
        self.failure: Delivery | None = None
        self.finished = False
        self.asked = False  # for a run, which has not come yet
        self._machine = machine
        self._tap = tap
        self._workers = workers
        self._transport = transport
        self._leave_out = leave_out
        self._on_death = on_death
        self._pacing = pacing
        self._runs: Iterator[Run | None] = iter(())  # what is still to be offered; None: not yet

    @property
    def has_found(self) -> bool:
        return self.finished or self.failure is not None or not self.handout.is_empty

    def start(self) -> None:
        """Once, before all else."""
        self._carry_out(self._tap.start())

    def begin(self, units: Units) -> None:
        """From now on these are offered. The machine is to be told."""
        self._pacing.limit(units.longest_run)
        self.units, self._runs = units, units.runs(lambda: self._pacing.size)
        self.handout.clear()
        self.failure = None

    def heard(self, news: Sequence[News]) -> None:
        """Of workers."""
        for one in news:
            if isinstance(one, Answer):
                self._note(one)
                self.tell(Finished(one))
            elif isinstance(one, Death):
                death = self._workers.judged(one)
                if self._on_death is not None:
                    self._on_death(death)
                self.tell(Died(death, tuple(self._workers.unbegun(one.worker))))
            else:
                self.tell(_change(one))

    def tell(self, event: Event) -> None:
        """Has the machine decide, and then offers it as many runs as it wants."""
        self._carry_out(self._tap.decide(event))
        while self._machine.wants:
            self._carry_out(self._tap.decide(self._offer()))

    def _offer(self) -> Offered | Paused | Ended:
        """What there is to do next. Code of the user's may run here, be slow, and be interrupted."""
        try:
            run = next(self._runs)
        except StopIteration:
            return Ended()
        return Offered(run) if run is not None else Paused()

    def _note(self, answer: Answer) -> None:
        """Learns from an answer how many slots may be held and how long runs should be."""
        self._workers.answered(answer.worker)
        self._transport.arrived(answer.slot)
        self._machine.held_allowed = self._transport.held_allowed
        count = cost = nbytes = 0
        for result in answer.results:
            if isinstance(result, Made):
                timing = result.timing
                count, cost, nbytes = count + 1, cost + timing.written - timing.began, nbytes + result.packed.nbytes
        if count:
            self._pacing.note(count, cost, nbytes)

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for step in instructions:  # grows while it is gone through
            if isinstance(step, Send):
                instructions.extend(self._send(step))
            elif isinstance(step, Deliver):
                self._deliver(step)
            elif isinstance(step, Recall):
                recalled = Recalled(step.worker, self._workers.recall(step.worker))
                instructions.extend(self._tap.decide(recalled))
            elif isinstance(step, Spawn):
                self._workers.start(step.worker)
            elif isinstance(step, LogDeath):
                assert self.units is not None
                death_messages.log_death(step.death, step.run and self.units.name(step.run))
            elif isinstance(step, Fail):
                self.failure, self.asked = self._given_up(step), False
            elif isinstance(step, Finish):
                self.finished, self.asked = True, False

    def _send(self, step: Send) -> list[Instruction]:
        """What follows if it cannot be sent: then the error is the answer, and comes in its place."""
        units = self.units
        assert units is not None
        request = Request(step.ticket, step.run, units.length, step.slot, step.left_out, units.payload(step.run))
        try:
            self._workers.send(step.worker, request)
        except ShippingError as error:
            error.add_note(f"stoker: it is {units.name(step.run)}")
            return self._tap.decide(Finished(Answer(step.worker, step.ticket, step.slot, [Failed(error)])))
        return []

    def _deliver(self, step: Deliver) -> None:
        assert self.units is not None
        lost = death_messages.losses(step.losses, self.units, step.run) if step.losses else ()
        self.handout.set(step.run, step.answer, lost, copy=step.copy)
        self.asked = False

    def _given_up(self, fail: Fail) -> Delivery:
        units = self.units
        assert units is not None
        batch = units.batch(fail.run.epoch, fail.run.position)
        if self._leave_out and fail.begun:
            return Delivery(batch, skipped=death_messages.whole_batch(fail, units))
        return Delivery(batch, error=death_messages.worker_died(fail, units))


def _change(news: Arrival | Departure | Allowance) -> Arrived | Left | Allowed:
    if isinstance(news, Arrival):
        return Arrived(news.worker, news.node)
    return Left(news.worker) if isinstance(news, Departure) else Allowed(news.times)
