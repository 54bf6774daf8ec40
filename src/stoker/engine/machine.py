"""The state machine: events in, instructions out. It knows no process, pipe, memory or clock.

A batch's life:

    batches ──issue──> sent to a worker ──Finished──> ready ──Deliver──> held ──Released──> its slot is free
                        │        ^
                        Died ────┘  (issued again, to another worker)

Credit: at most ``window`` batches are issued and not yet delivered. A worker has at most ``depth`` of them, one being
made and the others waiting in its pipe, so that it never idles between two. A batch that waits behind a slow one is
recalled and sent to another worker: when a worker idles and all credit is used up, or, where order does not matter,
when a whole window of later batches has overtaken it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

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
from stoker.errors import BugError
from stoker.plan import Batch
from stoker.workers import Outcome


@dataclass(slots=True)
class _Entry:
    """A batch that was issued and not yet delivered."""

    batch: Batch
    slot: int
    outcome: Outcome | None = None
    deaths: int = 0
    cause: str = ""  # of the last death; with ``doomed``, what the consumer will be told
    doomed: bool = False


@dataclass(slots=True)
class _Worker:
    tickets: deque[int] = field(default_factory=deque)  # sent and not answered, in order
    recall_missed: bool = False  # it had begun all it had: ask again only after it has answered
    stalled: bool = False  # a batch had to be taken back from it: it gets no more before it has answered


class Machine:
    """Decides what to do next.

    Args:
        workers: How many there are.
        window: Batches that may be issued ahead of the consumer.
        depth: Batches that a worker may have at a time.
        in_order: Deliver in the order of issue; else as they come, epoch after epoch.
        deaths_allowed: After so many deaths over one batch it is given up.
        held_allowed: Slots that the consumer may hold before it gets copies. May be changed at any time.
    """

    def __init__(
        self,
        *,
        workers: int,
        window: int,
        depth: int = 2,
        in_order: bool = True,
        deaths_allowed: int = 3,
        held_allowed: int = 2**62,
    ) -> None:
        self.held_allowed = held_allowed
        self._window = window
        self._depth = depth
        self._in_order = in_order
        self._deaths_allowed = deaths_allowed
        self._workers = [_Worker() for _ in range(workers)]
        self._batches: Iterator[Batch] = iter(())
        self._exhausted = False
        self._asked = False
        self._next_ticket = 0
        self._next_delivered = 0  # in order: the ticket whose turn it is
        self._entries: dict[int, _Entry] = {}  # by ticket, in the order of issue
        self._ready: deque[int] = deque()  # out of order: finished tickets, as they came
        self._again: deque[int] = deque()  # to be sent again, their worker having died or been relieved of them
        self._abandoned: dict[int, int] = {}  # tickets nobody waits for any more, with their slots
        self._free: list[int] = []  # slots, the last used on top: it is the warmest
        self._slots = 0
        self._held = 0
        self._handlers: dict[type, Callable[[Any], list[Instruction]]] = {
            Asked: self._on_asked,
            Finished: self._on_finished,
            Died: self._on_died,
            Released: self._on_released,
            Recalled: self._on_recalled,
            Sought: self._on_sought,
        }

    def start(self) -> list[Instruction]:
        return [Spawn(worker) for worker in range(len(self._workers))]

    def handle(self, event: Event) -> list[Instruction]:
        return self._handlers[type(event)](event)

    # Events

    def _on_asked(self, _: Asked) -> list[Instruction]:
        if self._asked:
            raise BugError("the consumer asked for a batch while it waits for one already")
        self._asked = True
        return self._fill(self._deliver([]))

    def _on_finished(self, event: Finished) -> list[Instruction]:
        outcome = event.outcome
        worker = self._workers[outcome.worker]
        try:
            worker.tickets.remove(outcome.ticket)
        except ValueError:
            raise BugError(f"worker {outcome.worker} answered ticket {outcome.ticket}, which it never had") from None
        worker.recall_missed = worker.stalled = False
        if outcome.ticket in self._abandoned:
            self._free.append(self._abandoned.pop(outcome.ticket))
        else:
            self._entries[outcome.ticket].outcome = outcome
            if not self._in_order:
                self._ready.append(outcome.ticket)
        return self._fill(self._deliver([]))

    def _on_died(self, event: Died) -> list[Instruction]:
        worker = self._workers[event.worker]
        lost = [ticket for ticket in worker.tickets if ticket in self._entries]
        self._free.extend(self._abandoned.pop(ticket) for ticket in worker.tickets if ticket in self._abandoned)
        if worker.tickets and worker.tickets[0] in self._entries:  # it was at work on the first
            self._blame(worker.tickets[0], event.cause)
        self._workers[event.worker] = _Worker()
        self._again.extendleft(ticket for ticket in reversed(lost) if not self._entries[ticket].doomed)
        return self._fill(self._deliver([Spawn(event.worker)]))

    def _on_released(self, event: Released) -> list[Instruction]:
        self._free.append(event.slot)
        self._held -= 1
        return []  # nothing waits for a slot: there are as many as credit and leases need

    def _on_recalled(self, event: Recalled) -> list[Instruction]:
        worker = self._workers[event.worker]
        if event.ticket is None:
            worker.recall_missed = True
            return []
        worker.tickets.remove(event.ticket)
        if event.ticket in self._abandoned:
            self._free.append(self._abandoned.pop(event.ticket))
        else:
            worker.stalled = True
            self._again.append(event.ticket)
        return self._fill([])

    def _on_sought(self, event: Sought) -> list[Instruction]:
        with_a_worker = {ticket for worker in self._workers for ticket in worker.tickets}
        for ticket, entry in self._entries.items():
            if ticket in with_a_worker:
                self._abandoned[ticket] = entry.slot
            else:
                self._free.append(entry.slot)
        self._entries.clear()
        self._ready.clear()
        self._again.clear()
        self._batches = event.batches
        self._exhausted = False
        self._next_delivered = self._next_ticket
        waiting = [Recall(n) for n, worker in enumerate(self._workers) for _ in range(len(worker.tickets) - 1)]
        return [*waiting, *self._fill([])]

    # What follows from them

    def _blame(self, ticket: int, cause: str) -> None:
        entry = self._entries[ticket]
        entry.deaths += 1
        entry.cause = cause
        if entry.deaths >= self._deaths_allowed:
            entry.doomed = True
            if not self._in_order:
                self._ready.append(ticket)

    def _deliver(self, out: list[Instruction]) -> list[Instruction]:
        if not self._asked:
            return out
        ticket = self._next_delivered if self._in_order else self._next_ready()
        entry = self._entries.get(ticket)
        if entry is None or (entry.outcome is None and not entry.doomed):
            return out
        del self._entries[ticket]
        self._asked = False
        self._next_delivered += 1
        if entry.outcome is None:
            self._free.append(entry.slot)
            out.append(Fail(entry.batch, entry.cause, entry.deaths))
        else:
            self._held += 1
            out.append(Deliver(entry.batch, entry.outcome, self._held > self.held_allowed))
        return out

    def _next_ready(self) -> int:
        """The first finished batch of the oldest epoch that has any left, or -1."""
        if not self._ready:
            return -1
        epoch = next(iter(self._entries.values())).batch.epoch
        for position, ticket in enumerate(self._ready):
            if self._entries[ticket].batch.epoch == epoch:
                del self._ready[position]
                return ticket
        return -1

    def _fill(self, out: list[Instruction]) -> list[Instruction]:
        """Uses up the credit, then lets idle workers help out others."""
        while (number := self._least_busy()) is not None and (ticket := self._issue()) is not None:
            entry = self._entries[ticket]
            self._workers[number].tickets.append(ticket)
            out.append(Send(number, ticket, entry.batch, entry.slot))
        self._relieve(out, idle=number is not None and not self._workers[number].tickets)
        if self._asked and self._exhausted and not self._entries:
            self._asked = False
            out.append(Finish())
        return out

    def _least_busy(self) -> int | None:
        """The worker to give the next ticket to, or None if all have enough."""
        best, least = None, self._depth
        for number, worker in enumerate(self._workers):
            count = len(worker.tickets)
            if count < least and not worker.stalled:
                best, least = number, count
                if not count:
                    break
        return best

    def _issue(self) -> int | None:
        """The next ticket to send: one that was lost, or a new one if there is credit."""
        if self._again:
            return self._again.popleft()
        if self._exhausted or len(self._entries) >= self._window:
            return None
        batch = next(self._batches, None)
        if batch is None:
            self._exhausted = True
            return None
        ticket = self._next_ticket
        self._next_ticket += 1
        self._entries[ticket] = _Entry(batch, self._take_slot())
        return ticket

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._slots += 1
        return self._slots - 1

    def _relieve(self, out: list[Instruction], *, idle: bool) -> None:
        """Takes back what waits behind a slow batch, if a worker idles or too many others have overtaken it."""
        if self._in_order and not idle:
            return
        for number, worker in enumerate(self._workers):
            if len(worker.tickets) < 2 or worker.recall_missed:
                continue
            if idle or self._next_ticket - worker.tickets[-1] > self._window:
                out.append(Recall(number))
                return
