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
from stoker.errors import WorkerDied
from stoker.memory import Decoder, Leases, Slots
from stoker.plan import Batch
from stoker.workers import Backend, Death, Done, Request

HELD_BYTES = 2**30  # slots that the consumer may hold beyond those in use; further batches are given as copies

log = logging.getLogger("stoker")


class Delivery(NamedTuple):
    """A batch for the consumer, or the error to raise in its place."""

    batch: Batch
    data: Any
    done: Done | None
    error: BaseException | None
    waited: int  # nanoseconds that the consumer was blocked for it


class Driver:
    """Runs one machine over one backend, in the thread of whoever calls."""

    def __init__(self, machine: Machine, backend: Backend, slots: Slots) -> None:
        self._machine = machine
        self._backend = backend
        self._slots = slots
        self._leases = Leases()
        self._decoder = Decoder()
        self._capacities: dict[int, int] = {}
        self._largest = 0
        self._length = 0
        self._delivery: Delivery | None = None
        self._asked = False  # still so if Ctrl-C broke off the last take
        self._finished = False
        self._carry_out(machine.start())

    def length(self) -> int:
        """The dataset's length, as worker 0 finds it."""
        return self._backend.length()

    def seek(self, batches: Iterator[Batch], length: int) -> None:
        """From now on these batches, of a dataset of that length."""
        self._length = length
        self._tell(Sought(batches))

    def take(self) -> Delivery | None:
        """The next batch, or None when there are no more. Blocks only while no batch is ready."""
        ended = self._leases.ended
        while ended:
            self._machine.handle(Released(ended.popleft()))
        if not self._asked:
            self._asked, self._finished = True, False
            self._tell(Asked())
        self._hear(block=False)
        if self._delivery is None and not self._finished:
            began = perf_counter_ns()
            while self._delivery is None and not self._finished:
                self._hear(block=True)
            return self._handed_over(perf_counter_ns() - began)
        return self._handed_over(0)

    def close(self) -> None:
        self._backend.close()
        self._slots.close()

    def _handed_over(self, waited: int) -> Delivery | None:
        delivery, self._delivery, self._asked = self._delivery, None, False
        if delivery is None or not waited:
            return delivery
        return delivery._replace(waited=waited)

    def _hear(self, *, block: bool) -> None:
        for news in self._backend.wait(block):
            if isinstance(news, Death):
                log.warning("worker %d died: %s. Another takes its place.", news.worker, news.cause)
                self._tell(Died(news.worker, news.cause))
            else:
                capacity = news.packed.capacity if isinstance(news, Done) else news.capacity
                if capacity > self._capacities.get(news.slot, 0):
                    self._note_growth(news.slot, capacity)
                self._tell(Finished(news))

    def _tell(self, event: Event) -> None:
        self._carry_out(self._machine.handle(event))

    def _carry_out(self, instructions: list[Instruction]) -> None:
        todo = deque(instructions)
        while todo:
            step = todo.popleft()
            if isinstance(step, Send):
                capacity = self._capacities.get(step.slot, 0)
                self._backend.send(step.worker, Request(step.ticket, step.batch, self._length, step.slot, capacity))
            elif isinstance(step, Deliver):
                self._deliver(step)
            elif isinstance(step, Recall):
                ticket = self._backend.recall(step.worker)
                todo.extend(self._machine.handle(Recalled(step.worker, ticket)))
            elif isinstance(step, Spawn):
                self._backend.start(step.worker)
            elif isinstance(step, Fail):
                self._delivery = Delivery(step.batch, None, None, _killer(step), 0)
            elif isinstance(step, Finish):
                self._finished = True

    def _deliver(self, step: Deliver) -> None:
        outcome = step.outcome
        if not isinstance(outcome, Done):
            self._machine.handle(Released(outcome.slot))
            self._delivery = Delivery(step.batch, None, None, outcome.error, 0)
            return
        packed = outcome.packed
        mapping = self._slots.view(outcome.slot, packed.capacity)
        root = self._leases.root(outcome.slot, mapping, packed.nbytes)
        data = self._decoder.decode(packed, mapping, root)
        if step.copy:
            data = map_leaves(_copied, data)
        self._delivery = Delivery(step.batch, data, outcome, None, 0)

    def _note_growth(self, slot: int, capacity: int) -> None:
        self._capacities[slot] = capacity
        if capacity > self._largest:
            self._largest = capacity
            self._machine.held_allowed = max(2, HELD_BYTES // capacity)


def _copied(leaf: Any) -> Any:
    """Memory of its own; the slot is released when the last view of it is dropped, which is at once."""
    if hasattr(leaf, "clone"):
        return leaf.clone()
    return leaf.copy() if hasattr(leaf, "ctypes") else leaf


def _killer(fail: Fail) -> WorkerDied:
    batch = fail.batch
    return WorkerDied(
        f"the batch of samples {batch.start} to {batch.stop - 1} of epoch {batch.epoch} killed its worker "
        f"{fail.deaths} times, the last time by {fail.cause}: look for a crash in native code or for too little memory "
        f"in dataset[i] for these samples"
    )
