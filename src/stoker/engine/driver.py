"""The driver: tells the machine what happened and carries out what it says. Too thin to be wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from time import monotonic, perf_counter_ns

from stoker.engine import death_messages
from stoker.engine.deadlines import Deadlines
from stoker.engine.delivery import Delivery
from stoker.engine.handout import HandOut
from stoker.engine.machine import Machine
from stoker.engine.messages import (
    Asked,
    Deliver,
    Died,
    Ended,
    Event,
    Fail,
    Finish,
    Finished,
    Instruction,
    LogDeath,
    Offered,
    Paused,
    Recall,
    Recalled,
    Released,
    Resumed,
    Send,
    Sought,
    Spawn,
)
from stoker.engine.pacing import Pacing
from stoker.engine.tap import Tap
from stoker.engine.units import Units
from stoker.engine.usage import Usage
from stoker.errors import ClosedError, ShippingError
from stoker.interrupts import Hand, is_interrupt, let_in, put_off
from stoker.plan import Batch, Run
from stoker.workers import Answer, Backend, Death, Failed, Made, Request, Transport

_CAREFUL = 1000  # runs after an interrupt: being careful takes some ten microseconds each


class Driver:
    """Runs one machine over one backend, in the thread of whoever calls.

    Args:
        machine: Fresh.
        backend: Fresh.
        transport: That the backend's results come by.
        store: A descriptor of the file that their store is in, if it has one of its own; closed in the end.
        timeout: Seconds that a worker may take for a batch.
        deaths_allowed: Before the dataset is held to be unmakeable.
        leave_out: Batches that are given up count as left out, and are no errors.
    """

    def __init__(
        self,
        machine: Machine,
        backend: Backend,
        transport: Transport,
        *,
        store: int | None = None,
        timeout: float | None = None,
        deaths_allowed: int = 3,
        leave_out: bool = False,
    ) -> None:
        self._machine = machine
        self._backend = backend
        self._transport = transport
        self._store = store
        self._deaths_allowed = deaths_allowed
        self._leave_out = leave_out
        self._deadlines = Deadlines(timeout, backend.place) if timeout is not None else None
        self._pacing = Pacing()
        self._handout = HandOut(transport)
        self.tap = Tap(machine)
        self._units: Units | None = None
        self._runs: Iterator[Run | None] = iter(())  # what is still to be offered; None: not yet
        self._failure: Delivery | None = None
        self._asked = False  # for a run, which has not come yet: the last take was interrupted
        self._is_asked_for_length = False
        self._interrupted = False  # until the next ``seek``,
        self._is_ending = False  # or for good
        self._finished = False
        # False if an exception (Ctrl-C) came in the middle of something: then use it no more. Not so while it waits.
        self.is_sound = True
        self._careful = 0  # so many runs are still to be asked for with care
        self._waited = 0  # nanoseconds for which the last take was blocked
        self._slowness = 0  # nanoseconds that the next run took to come, when that was slow
        self._left_at = 0  # when the consumer was given something then
        self._carry_out(self.tap.start())

    def length(self) -> int:
        """The dataset's length, as worker 0 finds it."""
        with put_off():
            self.is_sound = False
            found = self._length()
            self.is_sound = True
        return found

    def seek(self, units: Units) -> None:
        """From now on these, and nothing of what was before."""
        with put_off():
            self.is_sound = False
            self._pacing.limit(units.longest_run)
            self._units, self._runs = units, units.runs(lambda: self._pacing.size)
            self._handout.clear()
            self._failure = None
            self._interrupted = False
            self._ask_for_runs(Sought())
            self.is_sound = True

    def warm_up(self, seconds: float) -> None:
        """Listens for so long, or until all credit is used up, so that workers get on though nobody takes anything."""
        end = monotonic() + seconds
        with put_off():
            self.is_sound = False
            while not (self._machine.has_enough or self._is_told_to_stop()) and (left := end - monotonic()) > 0:
                if self._machine.is_paused:
                    self._ask_for_runs(Resumed())
                    left = 0
                self._hear(None if left == math.inf else left)
            self.is_sound = True

    def take(self, hand: Hand[Delivery]) -> None:
        """Puts the next batch into a hand that is empty; nothing if ``interrupt`` was called. Blocks only while none is
        ready. An exception out of a signal's handler, while it waits or opens a batch, loses nothing."""
        self._waited = 0
        if self._handout.is_empty and self._failure is None:
            if self._careful:
                self._careful -= 1
                with put_off():
                    self._find_next_run()
            else:
                self._find_next_run()
        if not self._handout.is_empty:
            assert self._units is not None
            self._handout.open(self._units, self._waited, hand)
        elif self._finished:
            hand.held = Delivery(Batch(0, 0, 0, 0), ended=True)
        else:
            hand.held, self._failure = self._failure, None

    def be_careful(self) -> None:
        """An interrupt has come, and others may follow: for a while, they are let in only where they do no harm."""
        self._careful = _CAREFUL

    def interrupt(self, *, for_good: bool = False) -> None:
        """From another thread: from now on ``take`` does not wait, and gives None, until a ``seek`` or for good."""
        self._interrupted, self._is_ending = True, self._is_ending or for_good
        self._backend.wake()

    def usage(self) -> Usage:
        """What is under way now. From any thread."""
        return self._machine.usage

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return self._backend.pids()

    def close(self) -> None:
        """May be called again, and must be by whoever was interrupted in it: somebody may still work with the slots."""
        try:
            self._backend.close()
        except BaseException as error:
            if not is_interrupt(error):
                self._free()
            raise
        self._free()

    def _free(self) -> None:
        self._transport.close()
        store, self._store = self._store, None
        if store is not None:
            os.close(store)

    def _find_next_run(self) -> None:
        self.is_sound = False
        self._next_run()
        self.is_sound = True

    def _next_run(self) -> None:
        """Has the machine deliver a run: into ``_due``, or as a ``_failure``, or not at all if there are no more."""
        for slot in self._transport.free():
            self.tap.decide(Released(slot))
        self._handout.clear()
        self._finished = False
        if not self._asked:
            self._asked = True
            if self._machine.is_paused:
                self._tell(Asked())
            else:
                self._ask_for_runs(Asked())
        self._raise_interrupt()
        self._hear(0)
        if self._is_waiting():
            began = perf_counter_ns()
            self._wait()
            self._waited = perf_counter_ns() - began
        elif self._machine.is_paused and perf_counter_ns() - self._left_at > self._slowness:
            self._ask_for_runs(Resumed())  # the consumer takes longer than the next run: workers shall not run dry
        if self._machine.is_paused:
            self._left_at = perf_counter_ns()

    def _wait(self) -> None:
        """Until something is found. A run that is slow to come is asked for only if nothing comes of what is under way
        within a tenth of the time that the last one took: quick work need not wait for it."""
        while self._is_waiting():
            if not self._machine.is_paused:
                self._hear(None)
                continue
            if self._machine.is_working:
                self._hear(self._slowness / 1e10)
            if self._machine.is_paused and self._is_waiting():
                self._ask_for_runs(Resumed())
                self._raise_interrupt()

    def _ask_for_runs(self, event: Asked | Sought | Resumed) -> None:
        began = perf_counter_ns()
        self._tell(event)
        if self._machine.is_paused:
            self._slowness = perf_counter_ns() - began

    def _raise_interrupt(self) -> None:
        """One that came while a unit was waited for, now that all is in order."""
        if self._units is not None and self._units.interrupt is not None:
            error, self._units.interrupt, self.is_sound = self._units.interrupt, None, True
            try:
                raise error
            finally:
                del error  # it holds this frame

    def _is_waiting(self) -> bool:
        return not (self._has_found() or self._is_told_to_stop())

    def _is_told_to_stop(self) -> bool:
        return self._interrupted or self._is_ending

    def _has_found(self) -> bool:
        return bool(not self._handout.is_empty or self._failure or self._finished)

    def _hear(self, timeout: float | None) -> None:
        news = self._backend.news()
        if not news and timeout != 0:
            self._listen(timeout)
            news = self._backend.news()
        if not news and self._deadlines is not None:
            self._end_the_overdue()
        self._handle(news)
        del news  # an error in it holds this frame, where the consumer does the work itself

    def _handle(self, news: list[Answer | Death]) -> None:
        for one in news:
            if isinstance(one, Answer):
                self._note(one)
                self._tell(Finished(one))
            else:
                self._tell(Died(self._judged(one), tuple(self._unbegun(one.worker))))

    def _listen(self, timeout: float | None) -> None:
        """Until there may be news. Whoever is interrupted meanwhile can go on."""
        if self._deadlines is not None:
            timeout = self._deadlines.within(timeout)
        self.is_sound = True
        with let_in():
            self._backend.wait(timeout)
        self.is_sound = False

    def _end_the_overdue(self) -> None:
        assert self._deadlines is not None
        for worker, at_once in self._deadlines.overdue():
            self._backend.end(worker, at_once=at_once)

    def _unbegun(self, worker: int) -> Iterator[int]:
        """What a dead worker had not looked at, up to what it was sent when it was dead already."""
        while (ticket := self._backend.recall(worker)) is not None:
            yield ticket

    def _judged(self, death: Death) -> Death:
        return death if self._deadlines is None else self._deadlines.judged(death)

    def _note(self, answer: Answer) -> None:
        """Learns from an answer how many slots may be held and how long runs should be."""
        if self._deadlines is not None:
            self._deadlines.answered(answer.worker)
        self._transport.arrived(answer.slot)
        self._machine.held_allowed = self._transport.held_allowed
        count = cost = nbytes = 0
        for result in answer.results:
            if isinstance(result, Made):
                timing = result.timing
                count, cost, nbytes = count + 1, cost + timing.written - timing.began, nbytes + result.packed.nbytes
        if count:
            self._pacing.note(count, cost, nbytes)

    def _tell(self, event: Event) -> None:
        self._carry_out(self.tap.decide(event))
        while self._machine.wants:
            self._carry_out(self.tap.decide(self._offer()))

    def _offer(self) -> Offered | Paused | Ended:
        """What there is to do next. Code of the user's may run here, be slow, and be interrupted."""
        try:
            run = next(self._runs)
        except StopIteration:
            return Ended()
        return Offered(run) if run is not None else Paused()

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for step in instructions:  # grows while it is gone through
            if isinstance(step, Send):
                instructions.extend(self._send(step))
            elif isinstance(step, Deliver):
                self._deliver(step)
            elif isinstance(step, Recall):
                instructions.extend(self.tap.decide(Recalled(step.worker, self._recall(step.worker))))
            elif isinstance(step, Spawn):
                self._backend.start(step.worker)
            elif isinstance(step, LogDeath):
                assert self._units is not None
                death_messages.log_death(step.death, step.run and self._units.name(step.run))
            elif isinstance(step, Fail):
                self._failure, self._asked = self._given_up(step), False
            elif isinstance(step, Finish):
                self._finished, self._asked = True, False

    def _send(self, step: Send) -> list[Instruction]:
        """What follows if it cannot be sent: then the error is the answer, and comes in its place."""
        units = self._units
        assert units is not None
        request = Request(step.ticket, step.run, units.length, step.slot, step.left_out, units.payload(step.run))
        try:
            self._backend.send(step.worker, request)
        except ShippingError as error:
            error.add_note(f"stoker: it is {units.name(step.run)}")
            return self.tap.decide(Finished(Answer(step.worker, step.ticket, step.slot, [Failed(error)])))
        if self._deadlines is not None:
            self._deadlines.sent(step.worker)
        return []

    def _recall(self, worker: int) -> int | None:
        ticket = self._backend.recall(worker)
        if ticket is not None and self._deadlines is not None:
            self._deadlines.recalled(worker)
        return ticket

    def _deliver(self, step: Deliver) -> None:
        assert self._units is not None
        lost = death_messages.losses(step.losses, self._units, step.run) if step.losses else ()
        self._handout.add(step.run, step.answer, lost, copy=step.copy)
        self._asked = False

    def _given_up(self, fail: Fail) -> Delivery:
        units = self._units
        assert units is not None
        batch = units.batch(fail.run.epoch, fail.run.position)
        if self._leave_out and fail.begun:
            return Delivery(batch, skipped=death_messages.whole_batch(fail, units))
        return Delivery(batch, error=death_messages.worker_died(fail, units))

    def _length(self) -> int:
        deaths = 0
        if not self._is_asked_for_length:  # else the last time was interrupted
            self._is_asked_for_length = True
            self._watch_worker_0()
        while True:
            found = self._backend.length()
            if isinstance(found, int):
                if self._deadlines is not None:
                    self._deadlines.answered(0)
                return found
            if found is None:
                self._listen(None)
                if self._deadlines is not None:
                    self._end_the_overdue()
                if self._is_told_to_stop():
                    raise ClosedError("it was closed while it was asked for its length")
                continue
            death = self._judged(found)
            deaths += 1
            if deaths >= self._deaths_allowed:
                raise death_messages.unmakeable(death, deaths)
            death_messages.log_death(death, None)
            self._backend.start(death.worker)
            if death.worker == 0:
                self._watch_worker_0()

    def _watch_worker_0(self) -> None:
        if self._deadlines is not None:
            self._deadlines.sent(0)
