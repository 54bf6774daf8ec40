"""The state machine: events in, instructions out. It knows no process, pipe, memory or clock, and calls nobody.

A run's life (a run is one batch, or a few small ones):

    Offered ──> sent to a worker ──Finished──> ready ──Deliver──> held ──Released──> its slot is free
                 │        ^
                 Died ────┘  (sent again, to another worker, batch by batch)

A batch that has killed several workers is given up, or, where samples may be left out, searched for the one that does
it: parts of it are made and thrown away until that is found, then all of it but that sample is made.

Credit: at most ``window`` runs are taken on and not yet delivered, and the machine ``wants`` another only while there
is a worker to send it to. A worker has at most ``depth`` of them, one being made and the others waiting in its pipe, so
that it never idles between two. A run that waits behind a slow one is recalled and sent to another worker: when a
worker idles and nothing new is to be had, or, where order does not matter, when a whole window of later runs has
overtaken it.

A run may be pinned to one worker. It waits until that worker has room, while others pass it by as far as credit goes;
it is never recalled, and if its worker dies, it is sent to the one that takes its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from stoker.engine.entry import Entry
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
from stoker.engine.roster import Roster
from stoker.engine.usage import Usage
from stoker.errors import BugError
from stoker.plan import Run
from stoker.workers import Answer, Death


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
        self._in_order = in_order
        self._deaths_allowed = deaths_allowed
        self._leave_out = leave_out
        self._roster = Roster(workers, depth)
        self.wants = False  # another run: there is credit, and a worker to send it to
        self.is_paused = False  # there may be credit, but the next run is slow to come: tell ``Resumed`` to go on
        self._exhausted = True
        self._next_worker = 0  # that the run it wants will be sent to, unless it is pinned
        self._asked = False
        self._next_ticket = 0
        self._entries: dict[int, Entry] = {}
        self._order: deque[int] = deque()  # their tickets, in the order of the plan
        self._ready: deque[int] = deque()  # out of order: finished tickets, as they came
        self._again: deque[int] = deque()  # to be sent again: their worker has died or was relieved of them
        self._pinned: dict[int, deque[int]] = {}  # to be sent to one worker alone, which has no room yet
        self._abandoned: dict[int, int] = {}  # tickets nobody waits for any more, with their slots
        self._free: list[int] = []  # slots, the last used on top: it is the warmest
        self._slots = 0
        self._held = 0
        self._futile_deaths = 0  # of workers that had begun nothing, since the last answer
        self.handlers: dict[type, Callable[[Any], list[Instruction]]] = {
            Asked: self._on_asked,
            Finished: self._on_finished,
            Died: self._on_died,
            Released: self._on_released,
            Recalled: self._on_recalled,
            Sought: self._on_sought,
            Offered: self._on_offered,
            Paused: self._on_paused,
            Resumed: self._on_resumed,
            Ended: self._on_ended,
        }

    def start(self) -> list[Instruction]:
        return [Spawn(worker) for worker in range(len(self._roster))]

    @property
    def has_enough(self) -> bool:
        """Nothing more can be made before the consumer takes something: no credit is left, or a batch was given up."""
        if any(entry.given_up is not None for entry in self._entries.values()):
            return True  # workers may be dying one after the other
        is_used_up = self._exhausted or len(self._entries) >= self._window
        return is_used_up and not self._again and not self.is_working  # who waits for its worker waits for its work

    @property
    def usage(self) -> Usage:
        busy = self._roster.busy()
        return Usage(len(self._entries), busy, self._slots, self._held)

    @property
    def is_working(self) -> bool:
        return self._roster.is_working

    def handle(self, event: Event) -> list[Instruction]:
        return self.handlers[type(event)](event)

    # Events

    def _on_asked(self, _: Asked) -> list[Instruction]:
        if self._asked:
            raise BugError("the consumer asked for a run while it waits for one already")
        self._asked = True
        return self._proceed([])

    def _on_finished(self, event: Finished) -> list[Instruction]:
        answer = event.answer
        self._roster.answered(answer.worker, answer.ticket)
        self._futile_deaths = 0
        if answer.ticket in self._abandoned:
            self._free.append(self._abandoned.pop(answer.ticket))
        else:
            self._note_answer(answer)
        return self._proceed([])

    def _on_died(self, event: Died) -> list[Instruction]:
        death = event.death
        tickets = self._roster.died(death.worker)
        lost, blamed = [], None
        for ticket in tickets:
            begun = ticket not in event.unbegun
            if ticket in self._abandoned:
                self._reclaim(self._abandoned.pop(ticket), may_still_write=begun and death.may_still_write)
            elif not begun:
                lost.append(ticket)
            else:
                blamed = self._batch_of(ticket, death)
                lost.extend(self._blamed(ticket, death))
        self._put_back(lost)
        if len(event.unbegun) == len(tickets):
            self._note_futile_death(death)
        return self._proceed([LogDeath(death, blamed), Spawn(death.worker)])

    def _on_released(self, event: Released) -> list[Instruction]:
        self._free.append(event.slot)
        self._held -= 1
        return []  # nothing waits for a slot: there are as many as credit and leases need

    def _on_recalled(self, event: Recalled) -> list[Instruction]:
        self._roster.recalled(event.worker, event.ticket, stalls=event.ticket not in self._abandoned)
        if event.ticket is None:
            return []
        if event.ticket in self._abandoned:
            self._free.append(self._abandoned.pop(event.ticket))
        else:
            self._again.append(event.ticket)
        return self._proceed([])

    def _on_sought(self, _: Sought) -> list[Instruction]:
        with_a_worker = self._roster.tickets()
        for ticket, entry in self._entries.items():
            if ticket in with_a_worker:
                self._abandoned[ticket] = entry.slot
            else:
                self._free.append(entry.slot)
        for kept in (self._entries, self._order, self._ready, self._again, self._pinned):
            kept.clear()
        self._exhausted = self.is_paused = False
        return self._proceed([Recall(worker) for worker in self._roster.queued()])

    def _on_offered(self, event: Offered) -> list[Instruction]:
        if not self.wants:
            raise BugError(f"{event.run} was offered, and there is no credit for it, or no worker to send it to")
        out: list[Instruction] = []
        ticket, pinned_to = self._enter(event.run), event.run.worker
        self._order.append(ticket)
        if pinned_to is None:
            self._send(self._next_worker, ticket, out)
        elif 0 <= pinned_to < len(self._roster):
            self._line_of(ticket).append(ticket)
            self._send_pinned(out)
        else:
            raise BugError(f"{event.run} is pinned to a worker of {len(self._roster)} that is not there")
        self._look_around(out)
        return out

    def _on_paused(self, _: Paused) -> list[Instruction]:
        self.is_paused = True
        return self._proceed([])

    def _on_resumed(self, _: Resumed) -> list[Instruction]:
        self.is_paused = False
        return self._proceed([])

    def _on_ended(self, _: Ended) -> list[Instruction]:
        self._exhausted = True
        return self._proceed([])

    # What follows from them

    def _note_answer(self, answer: Answer) -> None:
        entry = self._entries[answer.ticket]
        if entry.search is not None:  # only a part of the batch: to see whether it can be made
            entry.probe_made()
            self._put_back([answer.ticket])
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
        if death.may_still_write:
            entry.slot = self._take_slot()  # for good: somebody may still write into the old one
        if entry.run.size > 1:
            parts = self._divided(ticket)
            blamed, death = parts[max(death.nth, 1) - 1], death._replace(may_still_write=False)
            return [part for part in parts if part != blamed or self._blamed(part, death)]
        entry.blame(death, self._deaths_allowed, entry.run.samples if self._leave_out else 0)
        if entry.given_up is None:
            return [ticket]
        self._give_up(ticket, entry.given_up)
        return []

    def _note_futile_death(self, death: Death) -> None:
        """Workers that die before they begin anything will do so for ever: give up the batch that is due."""
        self._futile_deaths += 1
        if self._futile_deaths < self._deaths_allowed * len(self._roster):
            return
        if not self._order or self._order[0] not in (line := self._line_of(self._order[0])):
            return
        line.remove(self._order[0])
        due, *others = self._divided(self._order[0])
        self._put_back(others)
        self._give_up(due, Fail(self._entries[due].run, death, self._futile_deaths, begun=False))
        self._futile_deaths = 0

    def _give_up(self, ticket: int, given_up: Fail) -> None:
        self._entries[ticket].given_up = given_up
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

    def _line_of(self, ticket: int) -> deque[int]:
        """Where it waits until it can be sent."""
        worker = self._entries[ticket].run.worker
        return self._again if worker is None else self._pinned.setdefault(worker, deque())

    def _put_back(self, tickets: list[int]) -> None:
        """They are sent again, in this order and before all others."""
        for ticket in reversed(tickets):
            self._line_of(ticket).appendleft(ticket)

    def _proceed(self, out: list[Instruction]) -> list[Instruction]:
        """Delivers what is due, and sends what can be sent."""
        if self._asked:
            self._deliver(out)
        if self._pinned:
            self._send_pinned(out)
        while self._again and (number := self._roster.least_busy()) is not None:
            self._send(number, self._again.popleft(), out)
        self._look_around(out)
        return out

    def _look_around(self, out: list[Instruction]) -> None:
        """Whether another run is wanted; if not, idle workers help out others, or there is nothing left to do."""
        number = self._roster.least_busy()
        has_credit = not (self._exhausted or self.is_paused) and len(self._entries) < self._window
        if number is not None and has_credit and not self._again:
            self.wants, self._next_worker = True, number
            return
        self.wants = False
        self._relieve(out, idle=number is not None and self._roster.is_idle(number))
        if self._asked and self._exhausted and not self._entries:
            self._asked = False
            out.append(Finish())

    def _send(self, number: int, ticket: int, out: list[Instruction]) -> None:
        entry = self._entries[ticket]
        self._roster.sent(number, ticket)
        left_out = entry.left_out(entry.run.samples) if entry.search or entry.losses else ()
        out.append(Send(number, ticket, entry.run, entry.slot, left_out))

    def _send_pinned(self, out: list[Instruction]) -> None:
        for number, line in list(self._pinned.items()):
            while line and self._roster.has_room(number):
                self._send(number, line.popleft(), out)
            if not line:
                del self._pinned[number]

    def _deliver(self, out: list[Instruction]) -> None:
        ticket = self._next_due()
        if ticket is None:
            return
        entry = self._entries.pop(ticket)
        self._asked = False
        if entry.answer is None:
            assert entry.given_up is not None
            self._free.append(entry.slot)
            out.append(entry.given_up)
        else:
            self._held += 1
            copy = self._held > self.held_allowed
            out.append(Deliver(entry.run, entry.answer, copy, tuple(entry.losses)))

    def _next_due(self) -> int | None:
        """Takes the ticket whose turn it is out of its queue, if its run is ready."""
        if self._in_order:
            if self._order:
                entry = self._entries[self._order[0]]
                if entry.answer is not None or entry.given_up is not None:
                    return self._order.popleft()
        elif self._ready:
            epoch = self._entries[self._order[0]].run.epoch  # the oldest that has any left
            for ticket in self._ready:
                if self._entries[ticket].run.epoch == epoch:
                    self._ready.remove(ticket)
                    self._order.remove(ticket)
                    return ticket
        return None

    def _enter(self, run: Run) -> int:
        ticket = self._next_ticket
        self._next_ticket += 1
        self._entries[ticket] = Entry(run, self._take_slot())
        return ticket

    def _reclaim(self, slot: int, *, may_still_write: bool) -> None:
        if not may_still_write:
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

        def is_due(tickets: deque[int]) -> bool:
            is_overtaken = idle or self._next_ticket - tickets[-1] > self._window
            return is_overtaken and not any(map(self._is_pinned, tickets))  # nobody can tell which would come back

        number = self._roster.to_relieve(is_due)
        if number is not None:
            out.append(Recall(number))

    def _is_pinned(self, ticket: int) -> bool:
        return ticket in self._entries and self._entries[ticket].run.worker is not None
