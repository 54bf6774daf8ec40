"""The driver: asks, listens and waits, so that the machine decides and the executor does. Too thin to be wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from time import monotonic, perf_counter_ns

from stoker.engine.delivery import Delivery
from stoker.engine.executor import Executor
from stoker.engine.length_question import LengthQuestion
from stoker.engine.machine import Machine
from stoker.engine.messages import Asked, Released, Resumed, Sought
from stoker.engine.pacing import Pacing
from stoker.engine.tap import Tap
from stoker.engine.units import Units
from stoker.engine.usage import Usage
from stoker.engine.watched_workers import WatchedWorkers
from stoker.interrupts import Hand, is_interrupt, let_in, put_off
from stoker.plan import Batch
from stoker.workers import Backend, Death, Transport

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
        pacing: How many batches there are in a run. None: one.
        on_death: Is told of each worker that has died.
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
        pacing: Pacing | None = None,
        on_death: Callable[[Death], object] | None = None,
    ) -> None:
        self._machine = machine
        self._transport = transport
        self._store = store
        self._workers = WatchedWorkers(backend, timeout)
        self.tap = Tap(machine)
        pacing = pacing or Pacing(0.0, 0)
        parts = machine, self.tap, self._workers, transport, pacing
        self._executor = Executor(*parts, leave_out=leave_out, on_death=on_death)
        self._length = LengthQuestion(self._workers, deaths_allowed)
        self._interrupted = False  # until the next ``seek``,
        self._is_ending = False  # or for good
        # False if an exception (Ctrl-C) came in the middle of something: then use it no more. Not so while it waits.
        self.is_sound = True
        self._careful = 0  # so many runs are still to be asked for with care
        self._waited = 0  # nanoseconds for which the last take was blocked
        self._slowness = 0  # nanoseconds that the next run took to come, when that was slow
        self._left_at = 0  # when the consumer was given something then
        self._executor.start()

    def length(self) -> int:
        """The dataset's length, as worker 0 finds it."""
        with put_off():
            self.is_sound = False
            found = self._length.ask(self._listen, self._is_told_to_stop)
            self.is_sound = True
        return found

    def seek(self, units: Units) -> None:
        """From now on these, and nothing of what was before."""
        with put_off():
            self.is_sound = False
            self._executor.begin(units)
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
        executor = self._executor
        handout = executor.handout
        self._waited = 0
        if handout.is_empty:
            if executor.failure is None:
                self._find_next_run()
            if handout.is_empty:
                if executor.finished:
                    hand.held = Delivery(Batch(0, 0, 0, 0), ended=True)
                else:
                    hand.held, executor.failure = executor.failure, None
                return
        assert executor.units is not None
        handout.open(executor.units, self._waited, hand)

    def be_careful(self) -> None:
        """An interrupt has come, and others may follow: for a while, they are let in only where they do no harm."""
        self._careful = _CAREFUL

    def interrupt(self, *, for_good: bool = False) -> None:
        """From another thread: from now on ``take`` does not wait, and gives None, until a ``seek`` or for good."""
        self._interrupted, self._is_ending = True, self._is_ending or for_good
        self._workers.wake()

    def usage(self) -> Usage:
        """What is under way now. From any thread."""
        return self._machine.usage

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return self._workers.pids()

    def close(self) -> None:
        """May be called again, and must be by whoever was interrupted in it: somebody may still work with the slots."""
        try:
            self._workers.close()
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
        if self._careful:
            self._careful -= 1
            with put_off():
                self.is_sound = False
                self._next_run()
                self.is_sound = True
        else:
            self.is_sound = False
            self._next_run()
            self.is_sound = True

    def _next_run(self) -> None:
        """Has the machine deliver a run, or say that one was given up, or that there are no more."""
        executor = self._executor
        for slot in self._transport.free():
            self.tap.decide(Released(slot))
        executor.handout.clear()
        executor.finished = False
        if not executor.asked:  # else the last take was interrupted
            executor.asked = True
            if self._machine.is_paused:
                executor.tell(Asked())
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
        self._executor.tell(event)
        if self._machine.is_paused:
            self._slowness = perf_counter_ns() - began

    def _raise_interrupt(self) -> None:
        """One that came while a unit was waited for, now that all is in order."""
        units = self._executor.units
        if units is not None and units.interrupt is not None:
            error, units.interrupt, self.is_sound = units.interrupt, None, True
            try:
                raise error
            finally:
                del error  # it holds this frame

    def _is_waiting(self) -> bool:
        return not (self._interrupted or self._is_ending or self._executor.has_found)

    def _is_told_to_stop(self) -> bool:
        return self._interrupted or self._is_ending

    def _hear(self, timeout: float | None) -> None:
        news = self._workers.news()
        if not news and timeout != 0:
            self._listen(timeout)
            news = self._workers.news()
        if not news:
            self._workers.end_the_overdue()
        self._executor.heard(news)
        del news  # an error in it holds this frame, where the consumer does the work itself

    def _listen(self, timeout: float | None = None) -> None:
        """Until there may be news. Whoever is interrupted meanwhile can go on."""
        self.is_sound = True
        with let_in():
            self._workers.wait(timeout)
        self.is_sound = False
