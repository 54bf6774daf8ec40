"""The driver: tells the machine what happened and carries out what it says. Too thin to be wrong."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic, perf_counter_ns
from typing import NamedTuple

from stoker.collate.tensors import copied
from stoker.collate.tree import map_leaves
from stoker.engine import obituary
from stoker.engine.deadlines import Deadlines, limit_at
from stoker.engine.delivery import Delivery
from stoker.engine.machine import Machine
from stoker.engine.messages import (
    Asked,
    Deliver,
    Died,
    Event,
    Fail,
    Finish,
    Finished,
    Instruction,
    Mourn,
    Recall,
    Recalled,
    Released,
    Resumed,
    Send,
    Sought,
    Spawn,
)
from stoker.engine.pacing import Pacing
from stoker.errors import ShippingError
from stoker.memory import Decoder, Leases, Slots
from stoker.plan import Batch, Plan, Run, runs
from stoker.sources import Items
from stoker.workers import Answer, Backend, Death, Failed, Made, Request, Skipped

HELD_BYTES = 2**30  # slots that the consumer may hold beyond those in use; further batches are given as copies


class _Due(NamedTuple):
    """A batch whose turn it is, not yet looked at."""

    round: int
    result: Made | Failed
    slot: int
    worker: int
    idle: int
    copy: bool
    lost: tuple[Skipped, ...]


class Driver:
    """Runs one machine over one backend, in the thread of whoever calls.

    Args:
        machine: Fresh.
        backend: Fresh.
        slots: Those that the backend's workers write into.
        store: A descriptor of the file that their store is in, if it has one of its own; closed in the end.
        timeout: Seconds that a worker may take for a batch.
        deaths_allowed: Before the dataset is held to be unmakeable.
        leave_out: Batches that are given up count as left out, and are no errors.
    """

    def __init__(
        self,
        machine: Machine,
        backend: Backend,
        slots: Slots,
        *,
        store: int | None = None,
        timeout: float | None = None,
        deaths_allowed: int = 3,
        leave_out: bool = False,
    ) -> None:
        self._machine = machine
        self._backend = backend
        self._slots = slots
        self._store = store
        self._timeout = timeout
        self._deaths_allowed = deaths_allowed
        self._leave_out = leave_out
        self._deadlines = Deadlines(timeout, backend.place) if timeout is not None else None
        self._pacing = Pacing()
        self._leases = Leases()
        self._decoder = Decoder()
        self._plan: Plan | None = None
        self._items: Items | None = None
        self._epoch = 0
        self._largest = 0
        self._due: deque[_Due] = deque()  # the rest of the run that was delivered last
        self._failure: Delivery | None = None
        self._asked = False  # still so if the last take was interrupted
        self._interrupted = False
        self._finished = False
        self.is_sound = True  # False if an exception (Ctrl-C) came in the middle of something: use it no more
        self._waited = 0  # nanoseconds for which the last take was blocked
        self._slowness = 0  # nanoseconds that the next run took to come, when that was slow
        self._left_at = 0  # when the consumer was given something then
        self._carry_out(machine.start())

    def length(self) -> int:
        """The dataset's length, as worker 0 finds it."""
        self.is_sound = False
        found = self._length()
        self.is_sound = True
        return found

    def seek(self, batches: Iterator[Batch], plan: Plan, longest_run: int) -> None:
        """From now on these batches; where they are quick to make, up to ``longest_run`` of them in one go."""
        self._pacing.limit(longest_run)
        self._begin(runs(batches, plan.stride, lambda: self._pacing.size), plan, None)

    def follow(self, items: Items, plan: Plan) -> None:
        """From now on these items, one by one."""
        self._begin(items.runs(), plan, items)

    def _begin(self, runs: Iterator[Run | None], plan: Plan, items: Items | None) -> None:
        self.is_sound = False
        self._plan, self._items = plan, items
        for due in self._due:
            self._leases.drop(due.slot)
        self._due.clear()
        self._failure = None
        self._interrupted = False
        self._ask_for_runs(Sought(runs, _samples_of(plan)))
        self.is_sound = True

    def warm_up(self, seconds: float) -> None:
        """Listens for so long, or until all credit is used up, so that workers get on though nobody takes anything."""
        self.is_sound = False
        end = monotonic() + seconds
        while not self._machine.has_enough and (left := end - monotonic()) > 0:
            if self._machine.is_paused:
                self._ask_for_runs(Resumed())
                left = 0
            self._hear(None if left == math.inf else left)
        self.is_sound = True

    def take(self) -> Delivery | None:
        """The next batch, or None when it was interrupted. Blocks only while none is ready."""
        self._waited = 0
        if not self._due:
            self.is_sound = False
            self._next_run()
            self.is_sound = True
        if self._due:
            return self._open(self._due.popleft())
        if self._finished:
            return Delivery(Batch(0, 0, 0, 0), ended=True)
        failure, self._failure = self._failure, None
        return failure

    def interrupt(self) -> None:
        """From another thread: from now on ``take`` does not wait, and gives None, until the next ``seek``."""
        self._interrupted = True
        self._backend.wake()

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return self._backend.pids()

    def close(self) -> None:
        try:
            self._backend.close()
        finally:
            self._slots.close()
            if self._store is not None:
                os.close(self._store)
                self._store = None

    def _next_run(self) -> None:
        """Has the machine deliver a run: into ``_due``, or as a ``_failure``, or not at all if there are no more."""
        for slot in self._leases.free():
            self._machine.handle(Released(slot))
        self._finished = False
        if not self._asked:
            self._asked = True
            if self._machine.is_paused:
                self._tell(Asked())
            else:
                self._ask_for_runs(Asked())
        self._hear(0)
        if self._is_waiting():
            began = perf_counter_ns()
            self._wait()
            self._waited = perf_counter_ns() - began
        elif self._machine.is_paused and perf_counter_ns() - self._left_at > self._slowness:
            self._ask_for_runs(Resumed())  # the consumer takes longer than the next run: workers shall not run dry
        self._asked = self._interrupted and not self._has_found()
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

    def _ask_for_runs(self, event: Asked | Sought | Resumed) -> None:
        began = perf_counter_ns()
        self._tell(event)
        if self._machine.is_paused:
            self._slowness = perf_counter_ns() - began

    def _is_waiting(self) -> bool:
        return not (self._has_found() or self._interrupted)

    def _has_found(self) -> bool:
        return bool(self._due or self._failure or self._finished)

    def _hear(self, timeout: float | None) -> None:
        if self._deadlines is None:
            news = self._backend.wait(timeout)
        else:
            news = self._backend.wait(_sooner(self._deadlines.left(), timeout))
            if not news:
                self._end_the_overdue()
        for one in news:
            if isinstance(one, Answer):
                self._note(one)
                self._tell(Finished(one))
            else:
                self._tell(Died(self._judged(one), tuple(self._unbegun(one.worker))))

    def _end_the_overdue(self) -> None:
        assert self._deadlines is not None
        for worker, at_once in self._deadlines.overdue():
            self._backend.end(worker, at_once=at_once)

    def _unbegun(self, worker: int) -> Iterator[int]:
        """What a dead worker had not looked at, up to what it was sent when it was dead already."""
        while (ticket := self._backend.recall(worker)) is not None:
            yield ticket

    def _judged(self, death: Death) -> Death:
        """Tells a worker that was ended because it hung from one that died of itself."""
        if self._deadlines is None or not self._deadlines.died(death.worker):
            return death
        return self._hung(death)

    def _hung(self, death: Death) -> Death:
        assert self._timeout is not None
        limit = limit_at(death.place, self._timeout)
        return death._replace(cause=f"a timeout: it took more than {limit:g} s", likely="it hangs")

    def _note(self, answer: Answer) -> None:
        """Learns from an answer how large slots are and how long runs should be."""
        if self._deadlines is not None:
            self._deadlines.answered(answer.worker)
        self._slots.get(answer.slot, answer.capacity)
        if answer.capacity > self._largest:
            self._largest = answer.capacity
            self._machine.held_allowed = max(2, HELD_BYTES // answer.capacity)
        made = [result for result in answer.results if isinstance(result, Made)]
        if made:
            cost = sum(result.fetching + result.writing for result in made)
            self._pacing.note(len(made), cost, sum(result.packed.nbytes for result in made))

    def _tell(self, event: Event) -> None:
        self._carry_out(self._machine.handle(event))

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for step in instructions:  # grows while it is gone through
            if isinstance(step, Send):
                instructions.extend(self._send(step))
            elif isinstance(step, Deliver):
                self._deliver(step)
            elif isinstance(step, Recall):
                instructions.extend(self._machine.handle(Recalled(step.worker, self._recall(step.worker))))
            elif isinstance(step, Spawn):
                self._backend.start(step.worker)
            elif isinstance(step, Mourn):
                obituary.log_death(step.death, step.run and self._name(step.run))
            elif isinstance(step, Fail):
                self._failure = self._given_up(step)
            elif isinstance(step, Finish):
                self._finished = True

    def _send(self, step: Send) -> list[Instruction]:
        """What follows if it cannot be sent: then the error is the answer, and comes in its place."""
        assert self._plan is not None
        capacity = self._slots.get(step.slot).capacity
        item = None if self._items is None else self._items[step.run.round]
        request = Request(step.ticket, step.run, self._plan.length, step.slot, capacity, step.left_out, item)
        try:
            self._backend.send(step.worker, request)
        except ShippingError as error:
            error.add_note(f"stoker: it is item {step.run.round}")
            return self._machine.handle(
                Finished(Answer(step.worker, step.ticket, step.slot, capacity, 0, [Failed(error)]))
            )
        if self._deadlines is not None:
            self._deadlines.sent(step.worker)
        return []

    def _recall(self, worker: int) -> int | None:
        ticket = self._backend.recall(worker)
        if ticket is not None and self._deadlines is not None:
            self._deadlines.recalled(worker)
        return ticket

    def _deliver(self, step: Deliver) -> None:
        answer = step.answer
        self._epoch = step.run.epoch
        self._leases.open(answer.slot, len(answer.results))
        idle = answer.idle
        lost = obituary.losses(step.losses, self._plan, step.run) if step.losses else ()
        for start, result in zip(step.run.rounds, answer.results, strict=True):
            self._due.append(_Due(start, result, answer.slot, answer.worker, idle, step.copy, lost))
            idle = 0  # counted once a run

    def _given_up(self, fail: Fail) -> Delivery:
        assert self._plan is not None
        batch = self._plan.batch(fail.run.epoch, fail.run.round)
        if self._leave_out and fail.begun:
            return Delivery(batch, skipped=obituary.whole_batch(fail, self._plan))
        return Delivery(batch, error=obituary.worker_died(fail, self._plan, self._name(fail.run)))

    def _name(self, run: Run) -> str:
        """What is made there, as the user knows it."""
        assert self._plan is not None
        return obituary.batch_name(self._plan, run) if self._items is None else self._items.name(run.round)

    def _open(self, due: _Due) -> Delivery:
        """Makes views of a batch that lies in its slot."""
        assert self._plan is not None
        batch, result = self._plan.batch(self._epoch, due.round), due.result
        if isinstance(result, Failed):
            self._leases.drop(due.slot)
            return Delivery(batch, error=result.error)
        packed = result.packed
        try:
            mapping = self._slots.get(due.slot).view()
            root = self._leases.root(due.slot, mapping, packed.offset, packed.nbytes)
            data = self._decoder.decode(packed, mapping, root)
            data = map_leaves(copied, data) if due.copy else data
        except Exception as error:  # no memory for a copy, or an object that can't be unpickled here
            return Delivery(batch, error=error)
        skipped = result.skipped + due.lost if result.skipped or due.lost else ()
        return Delivery(batch, data, result, None, skipped, due.worker, due.idle, self._waited)

    def _length(self) -> int:
        deaths = 0
        self._watch_worker_0()
        while True:
            found = self._backend.length(self._deadlines.left() if self._deadlines else None)
            if isinstance(found, int):
                if self._deadlines is not None:
                    self._deadlines.answered(0)
                return found
            if found is None:
                self._end_the_overdue()
                continue
            death = self._judged(found)
            deaths += 1
            if deaths >= self._deaths_allowed:
                raise obituary.unmakeable(death, deaths)
            obituary.log_death(death, None)
            self._backend.start(death.worker)
            if death.worker == 0:
                self._watch_worker_0()

    def _watch_worker_0(self) -> None:
        if self._deadlines is not None:
            self._deadlines.sent(0)


def _sooner(one: float | None, other: float | None) -> float | None:
    """Of two timeouts, None being for ever."""
    return min((timeout for timeout in (one, other) if timeout is not None), default=None)


def _samples_of(plan: Plan) -> Callable[[Run], int]:
    def samples(run: Run) -> int:
        batch = plan.batch(run.epoch, run.round)
        return batch.stop - batch.start

    return samples
