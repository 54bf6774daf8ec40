"""The state machine: events in, instructions out. It knows no process, pipe, memory or clock.

A run's life (a run is one batch, or a few small ones):

    runs ──issue──> sent to a worker ──Finished──> ready ──Deliver──> held ──Released──> its slot is free
                     │        ^
                     Died ────┘  (issued again, to another worker, batch by batch)

A batch that has killed several workers is given up, or, where samples may be left out, searched for the one that does
it: parts of it are made and thrown away until that is found, then all of it but that sample is made.

Credit: at most ``window`` runs are issued and not yet delivered. A worker has at most ``depth`` of them, one being made
and the others waiting in its pipe, so that it never idles between two. A run that waits behind a slow one is recalled
and sent to another worker: when a worker idles and all credit is used up, or, where order does not matter, when a
whole window of later runs has overtaken it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from stoker.engine.entry import Entry
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
from stoker.errors import BugError
from stoker.plan import Run
from stoker.workers import Answer, Death


@dataclass(slots=True)
class _Worker:
    tickets: deque[int] = field(default_factory=deque)  # sent and not answered, in order
    recall_missed: bool = False  # it had begun all it had: ask again only after it has answered
    stalled: bool = False  # a run had to be taken back from it: it gets no more before it has answered


class Machine:
    """Decides what to do next.

    Args:
        workers: How many there are.
        window: Runs that may be issued ahead of the consumer.
        depth: Runs that a worker may have at a time.
        in_order: Deliver in the order of issue; else as they come, epoch after epoch.
        deaths_allowed: After so many deaths over one batch it is given up, or searched.
        leave_out: Search it for the sample that kills, and leave that out.
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
        leave_out: bool = False,
        held_allowed: int = 2**62,
    ) -> None:
        self.held_allowed = held_allowed
        self._window = window
        self._depth = depth
        self._in_order = in_order
        self._deaths_allowed = deaths_allowed
        self._leave_out = leave_out
        self._workers = [_Worker() for _ in range(workers)]
        self._runs: Iterator[Run | None] = iter(())
        self._samples: Callable[[Run], int] = lambda run: 0
        self._exhausted = False
        self.is_paused = False  # there is credit, but the next run was slow to come: tell ``Resumed`` to go on
        self._asked = False
        self._turn = 0  # the worker that is looked at first
        self._next_ticket = 0
        self._entries: dict[int, Entry] = {}
        self._order: deque[int] = deque()  # their tickets, in the order of the plan
        self._ready: deque[int] = deque()  # out of order: finished tickets, as they came
        self._again: deque[int] = deque()  # to be sent again: their worker has died or was relieved of them
        self._abandoned: dict[int, int] = {}  # tickets nobody waits for any more, with their slots
        self._free: list[int] = []  # slots, the last used on top: it is the warmest
        self._slots = 0
        self._held = 0
        self._futile_deaths = 0  # of workers that had begun nothing, since the last answer
        self._handlers: dict[type, Callable[[Any], list[Instruction]]] = {
            Asked: self._on_asked,
            Finished: self._on_finished,
            Died: self._on_died,
            Released: self._on_released,
            Recalled: self._on_recalled,
            Sought: self._on_sought,
            Resumed: self._on_resumed,
        }

    def start(self) -> list[Instruction]:
        return [Spawn(worker) for worker in range(len(self._workers))]

    @property
    def has_enough(self) -> bool:
        """Nothing more can be made before the consumer takes something: no credit is left, or a batch was given up."""
        if any(entry.doom is not None for entry in self._entries.values()):
            return True  # workers may be dying one after the other
        is_used_up = self._exhausted or len(self._entries) >= self._window
        return is_used_up and not self._again and not self.is_working

    @property
    def is_working(self) -> bool:
        return any(worker.tickets for worker in self._workers)

    def handle(self, event: Event) -> list[Instruction]:
        return self._handlers[type(event)](event)

    # Events

    def _on_asked(self, _: Asked) -> list[Instruction]:
        if self._asked:
            raise BugError("the consumer asked for a run while it waits for one already")
        self._asked = True
        return self._proceed([])

    def _on_finished(self, event: Finished) -> list[Instruction]:
        answer = event.answer
        worker = self._workers[answer.worker]
        try:
            worker.tickets.remove(answer.ticket)
        except ValueError:
            raise BugError(f"worker {answer.worker} answered ticket {answer.ticket}, which it never had") from None
        worker.recall_missed = worker.stalled = False
        self._futile_deaths = 0
        if answer.ticket in self._abandoned:
            self._free.append(self._abandoned.pop(answer.ticket))
        else:
            self._note_answer(answer)
        return self._proceed([])

    def _on_died(self, event: Died) -> list[Instruction]:
        death = event.death
        tickets = self._workers[death.worker].tickets
        self._workers[death.worker] = _Worker()
        lost, blamed = [], None
        for ticket in tickets:
            begun = ticket not in event.unbegun
            if ticket in self._abandoned:
                self._reclaim(self._abandoned.pop(ticket), haunted=begun and death.haunted)
            elif not begun:
                lost.append(ticket)
            else:
                blamed = self._batch_of(ticket, death)
                lost.extend(self._blamed(ticket, death))
        self._again.extendleft(reversed(lost))
        if len(event.unbegun) == len(tickets):
            self._note_futile_death(death)
        return self._proceed([Mourn(death, blamed), Spawn(death.worker)])

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
        return self._proceed([])

    def _on_sought(self, event: Sought) -> list[Instruction]:
        with_a_worker = {ticket for worker in self._workers for ticket in worker.tickets}
        for ticket, entry in self._entries.items():
            if ticket in with_a_worker:
                self._abandoned[ticket] = entry.slot
            else:
                self._free.append(entry.slot)
        for kept in (self._entries, self._order, self._ready, self._again):
            kept.clear()
        self._runs = event.runs
        self._samples = event.samples
        self._exhausted = self.is_paused = False
        waiting = [Recall(n) for n, worker in enumerate(self._workers) for _ in range(len(worker.tickets) - 1)]
        return self._proceed([*waiting])

    def _on_resumed(self, _: Resumed) -> list[Instruction]:
        self.is_paused = False
        return self._proceed([])

    # What follows from them

    def _note_answer(self, answer: Answer) -> None:
        entry = self._entries[answer.ticket]
        if entry.search is not None:  # only a part of the batch: to see whether it can be made
            entry.probe_made()
            self._again.appendleft(answer.ticket)
            return
        entry.answer = answer
        if not self._in_order:
            self._ready.append(answer.ticket)

    def _batch_of(self, ticket: int, death: Death) -> Run:
        """The very batch over which the worker died."""
        return self._entries[ticket].run.split()[max(death.nth, 1) - 1]

    def _blamed(self, ticket: int, death: Death) -> list[int]:
        """The tickets to issue again in place of one whose worker has died over it."""
        entry = self._entries[ticket]
        if death.haunted:
            entry.slot = self._take_slot()  # for good: somebody may still write into the old one
        if entry.run.size > 1:
            parts = self._divided(ticket)
            guilty = parts[max(death.nth, 1) - 1]
            return [part for part in parts if part != guilty or self._blamed(part, death._replace(haunted=False))]
        entry.blame(death, self._deaths_allowed, self._samples(entry.run) if self._leave_out else 0)
        if entry.doom is None:
            return [ticket]
        self._doom(ticket, entry.doom)
        return []

    def _note_futile_death(self, death: Death) -> None:
        """Workers that die before they begin anything will do so for ever: give up the batch that is due."""
        self._futile_deaths += 1
        if self._futile_deaths < self._deaths_allowed * len(self._workers):
            return
        if not self._order or self._order[0] not in self._again:
            return
        self._again.remove(self._order[0])
        due, *others = self._divided(self._order[0])
        self._again.extendleft(reversed(others))
        self._doom(due, Fail(self._entries[due].run, death, self._futile_deaths, begun=False))
        self._futile_deaths = 0

    def _doom(self, ticket: int, doom: Fail) -> None:
        self._entries[ticket].doom = doom
        if not self._in_order:
            self._ready.append(ticket)

    def _divided(self, ticket: int) -> list[int]:
        """Puts runs of single batches in the place of a longer one."""
        entry = self._entries.pop(ticket)
        self._free.append(entry.slot)
        parts = [self._enter(run) for run in entry.run.split()]
        place = self._order.index(ticket)
        self._order.remove(ticket)
        for part in reversed(parts):
            self._order.insert(place, part)
        return parts

    def _proceed(self, out: list[Instruction]) -> list[Instruction]:
        """Delivers what is due, uses up the credit, and lets idle workers help out others."""
        if self._asked:
            self._deliver(out)
        while (number := self._least_busy()) is not None and (ticket := self._issue()) is not None:
            entry = self._entries[ticket]
            self._workers[number].tickets.append(ticket)
            self._turn = number + 1
            left_out = entry.left_out(self._samples(entry.run)) if entry.search or entry.losses else ()
            out.append(Send(number, ticket, entry.run, entry.slot, left_out))
        self._relieve(out, idle=number is not None and not self._workers[number].tickets)
        if self._asked and self._exhausted and not self._entries:
            self._asked = False
            out.append(Finish())
        return out

    def _deliver(self, out: list[Instruction]) -> None:
        ticket = self._next_due()
        if ticket is None:
            return
        entry = self._entries.pop(ticket)
        self._asked = False
        if entry.answer is None:
            assert entry.doom is not None
            self._free.append(entry.slot)
            out.append(entry.doom)
        else:
            self._held += 1
            copy = self._held > self.held_allowed
            out.append(Deliver(entry.run, entry.answer, copy, tuple(entry.losses)))

    def _next_due(self) -> int | None:
        """Takes the ticket whose turn it is out of its queue, if its run is ready."""
        if self._in_order:
            if self._order:
                entry = self._entries[self._order[0]]
                if entry.answer is not None or entry.doom is not None:
                    return self._order.popleft()
        elif self._ready:
            epoch = self._entries[self._order[0]].run.epoch  # the oldest that has any left
            for ticket in self._ready:
                if self._entries[ticket].run.epoch == epoch:
                    self._ready.remove(ticket)
                    self._order.remove(ticket)
                    return ticket
        return None

    def _least_busy(self) -> int | None:
        """The worker to give the next ticket to, or None if all have enough.

        They take turns: one that gets nothing for long would keep open what it had last, as of a cache.
        """
        best, least = None, self._depth
        for number in chain(range(self._turn, len(self._workers)), range(self._turn)):
            worker = self._workers[number]
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
        if self._exhausted or self.is_paused or len(self._entries) >= self._window:
            return None
        try:
            run = next(self._runs)
        except StopIteration:
            self._exhausted = True
            return None
        if run is None:
            self.is_paused = True
            return None
        ticket = self._enter(run)
        self._order.append(ticket)
        return ticket

    def _enter(self, run: Run) -> int:
        ticket = self._next_ticket
        self._next_ticket += 1
        self._entries[ticket] = Entry(run, self._take_slot())
        return ticket

    def _reclaim(self, slot: int, *, haunted: bool) -> None:
        if not haunted:
            self._free.append(slot)

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._slots += 1
        return self._slots - 1

    def _relieve(self, out: list[Instruction], *, idle: bool) -> None:
        """Takes back what waits behind a slow run, if a worker idles or too many others have overtaken it."""
        if self._in_order and not idle:
            return
        for number, worker in enumerate(self._workers):
            if len(worker.tickets) < 2 or worker.recall_missed:
                continue
            if idle or self._next_ticket - worker.tickets[-1] > self._window:
                out.append(Recall(number))
                return
