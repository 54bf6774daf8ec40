"""The driver: tells the machine what happened and carries out what it says. Too thin to be wrong."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any, NamedTuple

from stoker.collate.tree import map_leaves
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
    Recall,
    Recalled,
    Released,
    Send,
    Sought,
    Spawn,
)
from stoker.engine.pacing import Pacing
from stoker.errors import WorkerDied
from stoker.memory import Decoder, Leases, Slots
from stoker.plan import Batch, Plan, runs
from stoker.workers import Answer, Backend, Failed, Made, Request

HELD_BYTES = 2**30  # slots that the consumer may hold beyond those in use; further batches are given as copies

log = logging.getLogger("stoker")


class Delivery(NamedTuple):
    """A batch for the consumer, or the error to raise in its place. ``idle``: what its worker had waited for it."""

    batch: Batch
    data: Any
    made: Made | None
    error: BaseException | None
    idle: int = 0


class _Due(NamedTuple):
    """A batch whose turn it is, not yet looked at."""

    round: int
    result: Made | Failed
    slot: int
    idle: int
    copy: bool


class Driver:
    """Runs one machine over one backend, in the thread of whoever calls."""

    def __init__(self, machine: Machine, backend: Backend, slots: Slots) -> None:
        self._machine = machine
        self._backend = backend
        self._slots = slots
        self._pacing = Pacing()
        self._leases = Leases()
        self._decoder = Decoder()
        self._plan: Plan | None = None
        self._epoch = 0
        self._largest = 0
        self._due: deque[_Due] = deque()  # the rest of the run that was delivered last
        self._failure: Delivery | None = None
        self._asked = False  # still so if Ctrl-C broke off the last take
        self._finished = False
        self.waited = 0  # nanoseconds for which the last take was blocked
        self._carry_out(machine.start())

    def length(self) -> int:
        """The dataset's length, as worker 0 finds it."""
        return self._backend.length()

    def seek(self, batches: Iterator[Batch], plan: Plan, longest_run: int) -> None:
        """From now on these batches; where they are quick to make, up to ``longest_run`` of them in one go."""
        self._plan = plan
        self._pacing.limit(longest_run)
        for due in self._due:
            self._leases.drop(due.slot)
        self._due.clear()
        self._tell(Sought(runs(batches, plan.stride, lambda: self._pacing.size)))

    def take(self) -> Delivery | None:
        """The next batch, or None when there are no more. Blocks only while no batch is ready."""
        self.waited = 0
        if not self._due:
            self._next_run()
        if self._due:
            return self._open(self._due.popleft())
        failure, self._failure = self._failure, None
        return failure

    def close(self) -> None:
        self._backend.close()
        self._slots.close()

    def _next_run(self) -> None:
        """Has the machine deliver a run: into ``_due``, or as a ``_failure``, or not at all if there are no more."""
        for slot in self._leases.free():
            self._machine.handle(Released(slot))
        if not self._asked:
            self._asked, self._finished = True, False
            self._tell(Asked())
        self._hear(block=False)
        if self._is_waiting():
            began = perf_counter_ns()
            while self._is_waiting():
                self._hear(block=True)
            self.waited = perf_counter_ns() - began
        self._asked = False

    def _is_waiting(self) -> bool:
        return not (self._due or self._failure or self._finished)

    def _hear(self, *, block: bool) -> None:
        for news in self._backend.wait(block):
            if isinstance(news, Answer):
                self._note(news)
                self._tell(Finished(news))
            else:
                log.warning("worker %d died: %s. Another takes its place.", news.worker, news.cause)
                self._tell(Died(*news))

    def _note(self, answer: Answer) -> None:
        """Learns from an answer how large slots are and how long runs should be."""
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
                assert self._plan is not None
                capacity = self._slots.get(step.slot).capacity
                request = Request(step.ticket, step.run, self._plan.length, step.slot, capacity)
                self._backend.send(step.worker, request)
            elif isinstance(step, Deliver):
                self._deliver(step)
            elif isinstance(step, Recall):
                ticket = self._backend.recall(step.worker)
                instructions.extend(self._machine.handle(Recalled(step.worker, ticket)))
            elif isinstance(step, Spawn):
                self._backend.start(step.worker)
            elif isinstance(step, Fail):
                self._failure = Delivery(self._batch(step.run.round, step.run.epoch), None, None, _killer(step))
            elif isinstance(step, Finish):
                self._finished = True

    def _deliver(self, step: Deliver) -> None:
        answer = step.answer
        self._epoch = step.run.epoch
        self._leases.open(answer.slot, len(answer.results))
        idle = answer.idle
        for start, result in zip(step.run.rounds, answer.results, strict=True):
            self._due.append(_Due(start, result, answer.slot, idle, step.copy))
            idle = 0  # counted once a run

    def _open(self, due: _Due) -> Delivery:
        """Makes views of a batch that lies in its slot."""
        batch, result = self._batch(due.round, self._epoch), due.result
        if isinstance(result, Failed):
            self._leases.drop(due.slot)
            return Delivery(batch, None, None, result.error)
        packed = result.packed
        mapping = self._slots.get(due.slot).view()
        root = self._leases.root(due.slot, mapping, packed.offset, packed.nbytes)
        data = self._decoder.decode(packed, mapping, root)
        return Delivery(batch, map_leaves(_copied, data) if due.copy else data, result, None, due.idle)

    def _batch(self, start: int, epoch: int) -> Batch:
        assert self._plan is not None
        return self._plan.batch(epoch, start)


def _copied(leaf: Any) -> Any:
    """Memory of its own; the slot is released when the last view of it is dropped, which is at once."""
    if hasattr(leaf, "clone"):
        return leaf.clone()
    return leaf.copy() if hasattr(leaf, "ctypes") else leaf


def _killer(fail: Fail) -> WorkerDied:
    return WorkerDied(
        f"the batch at place {fail.run.round} of epoch {fail.run.epoch} killed its worker {fail.deaths} times, the "
        f"last time by {fail.cause}: look for a crash in native code or for too little memory in its samples"
    )
