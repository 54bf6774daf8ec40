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

Where workers take long to come, as on other machines, each is announced (``Arrived``), and is sent nothing before that.
While nobody is up, one run is taken on all the same: if nobody can come up at all, that is the one to fail. Where they
come and go, the window follows: each one that is up has its ``share`` of it.

A run may be pinned to one worker. It waits until that worker has room, while others pass it by as far as credit goes;
it is never recalled, and if its worker dies, it is sent to the one that takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.engine.backlog import Backlog
from stoker.engine.dispatch import Dispatch
from stoker.engine.messages import (
    Allowed,
    Arrived,
    Asked,
    Deliver,
    Died,
    Ended,
    Event,
    Finish,
    Finished,
    Instruction,
    Left,
    LogDeath,
    Offered,
    Paused,
    Recall,
    Recalled,
    Released,
    Resumed,
    Sought,
    Spawn,
)
from stoker.engine.recovery import Recovery
from stoker.engine.roster import Roster
from stoker.engine.slot_pool import SlotPool
from stoker.engine.usage import Usage
from stoker.engine.window import Window
from stoker.errors import BugError


class Machine:
    """Decides what to do next.

    Args:
        workers: How many there are.
        window: Runs that may be issued ahead of the consumer.
        depth: Runs that a worker may have at a time.
        in_order: Deliver in the order of issue; else as they come, epoch after epoch.
        deaths_allowed: After so many deaths over one batch it is given up, or searched.
        leave_out: Search it for the sample that kills, and leave that out.
        replacements: Samples that are tried in its place; 0: none.
        held_allowed: Slots that the consumer may hold before it gets copies. May be changed at any time.
        announced: Workers are sent nothing before they ``Arrived``; else they are taken to be up from the start.
        share: Runs of the window for each worker that is up, where workers come and go. None: the window stays.
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
        replacements: int = 0,
        held_allowed: int = 2**62,
        announced: bool = False,
        share: int | None = None,
    ) -> None:
        self.held_allowed = held_allowed
        self._in_order = in_order
        self._slots = SlotPool()
        self._backlog = Backlog(self._slots, in_order=in_order, replacements=replacements)
        self._roster = Roster(workers, depth, announced=announced)
        self._window = Window(window, share, self._roster)
        self._dispatch = Dispatch(self._backlog, self._roster)
        parts = self._backlog, self._dispatch, self._roster, self._slots
        self._recovery = Recovery(*parts, deaths_allowed=deaths_allowed, leave_out=leave_out)
        self.wants = False  # another run: there is credit, and a worker to send it to
        self.is_paused = False  # there may be credit, but the next run is slow to come: tell ``Resumed`` to go on
        self._exhausted = True
        self._next_worker: int | None = 0  # that the run it wants will be sent to, unless it is pinned or nobody is up
        self._asked = False
        self.handlers: dict[type, Callable[[Any], list[Instruction]]] = {
            Asked: self._on_asked,
            Finished: self._on_finished,
            Died: self._on_died,
            Arrived: self._on_arrived,
            Left: self._on_left,
            Allowed: self._on_allowed,
            Released: self._on_released,
            Recalled: self._on_recalled,
            Sought: self._on_sought,
            Offered: self._on_offered,
            Paused: self._on_supply,
            Resumed: self._on_supply,
            Ended: self._on_supply,
        }

    def start(self) -> list[Instruction]:
        return [Spawn(worker) for worker in range(len(self._roster))]

    @property
    def has_enough(self) -> bool:
        """Nothing more can be made before the consumer takes something: no credit is left, or a batch was given up."""
        if self._backlog.has_given_up:
            return True  # workers may be dying one after the other
        is_used_up = self._exhausted or len(self._backlog.entries) >= self._window.size
        # Who waits for its worker waits for its work.
        return is_used_up and not self._dispatch.again and not self.is_working

    @property
    def usage(self) -> Usage:
        return Usage(
            len(self._backlog.entries),
            self._roster.busy(),
            self._slots.count,
            self._slots.held,
            self._roster.nodes(),
            self._window.workers_up(),
            min(self._slots.count, self._backlog.most_finished + len(self._roster)),
        )

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
        self._recovery.futile_deaths = 0
        if not self._backlog.answered(answer):
            self._dispatch.put_back([answer.ticket])
        return self._proceed([])

    def _on_died(self, event: Died) -> list[Instruction]:
        blamed = self._recovery.died(event)
        self._window.follow_workers()
        return self._proceed([LogDeath(event.death, blamed), Spawn(event.death.worker)])

    def _on_arrived(self, event: Arrived) -> list[Instruction]:
        self._roster.arrived(event.worker, event.node)
        self._window.follow_workers()
        return self._proceed([])

    def _on_left(self, event: Left) -> list[Instruction]:
        self._roster.left(event.worker)
        self._window.follow_workers()
        return self._proceed([])

    def _on_allowed(self, event: Allowed) -> list[Instruction]:
        self._window.allow(event.times)
        return self._proceed([])

    def _on_released(self, event: Released) -> list[Instruction]:
        self._slots.released(event.slot)
        return []  # nothing waits for a slot: there are as many as credit and leases need

    def _on_recalled(self, event: Recalled) -> list[Instruction]:
        is_abandoned = self._backlog.is_abandoned(event.ticket)
        self._roster.recalled(event.worker, event.ticket, stalls=not is_abandoned)
        if event.ticket is None:
            return []
        if is_abandoned:
            self._backlog.drop(event.ticket)
        else:
            self._dispatch.again.append(event.ticket)
        return self._proceed([])

    def _on_sought(self, _: Sought) -> list[Instruction]:
        self._backlog.abandon(self._roster.tickets())
        self._dispatch.clear()
        self._exhausted = self.is_paused = False
        return self._proceed([Recall(worker) for worker in self._roster.queued()])

    def _on_offered(self, event: Offered) -> list[Instruction]:
        if not self.wants:
            raise BugError(f"{event.run} was offered, and there is no credit for it, or no worker to send it to")
        out: list[Instruction] = []
        ticket, pinned_to = self._backlog.add(event.run), event.run.worker
        if pinned_to is None and self._next_worker is not None:
            self._dispatch.send(self._next_worker, ticket, out)
        elif pinned_to is None:
            self._dispatch.again.append(ticket)
        elif 0 <= pinned_to < len(self._roster):
            self._dispatch.line_of(ticket).append(ticket)
            self._dispatch.send_pinned(out)
        else:
            raise BugError(f"{event.run} is pinned to a worker of {len(self._roster)} that is not there")
        self._look_around(out)
        return out

    def _on_supply(self, event: Paused | Resumed | Ended) -> list[Instruction]:
        kind = type(event)
        self.is_paused = kind is Paused
        self._exhausted = self._exhausted or kind is Ended
        return self._proceed([])

    # What follows from them

    def _proceed(self, out: list[Instruction]) -> list[Instruction]:
        """Delivers what is due, and sends what can be sent."""
        if self._asked:
            self._deliver(out)
        if self._dispatch.pinned:
            self._dispatch.send_pinned(out)
        if self._dispatch.again:
            self._dispatch.send_again(out)
        self._look_around(out)
        return out

    def _look_around(self, out: list[Instruction]) -> None:
        """Whether another run is wanted; if not, idle workers help out others, or there is nothing left to do."""
        number, entries = self._roster.least_busy(), self._backlog.entries
        has_credit = not (self._exhausted or self.is_paused) and len(entries) < self._window.size
        can_be_sent = number is not None or not (entries or self._roster.is_anybody_up())
        if can_be_sent and has_credit and not self._dispatch.again:
            self.wants, self._next_worker = True, number
            return
        self.wants = False
        if number is not None and self._roster.is_idle(number):
            self._dispatch.relieve(0, out)
        elif not self._in_order:
            self._dispatch.relieve(self._window.size, out)
        if self._asked and self._exhausted and not entries:
            self._asked = False
            out.append(Finish())

    def _deliver(self, out: list[Instruction]) -> None:
        entry = self._backlog.take_due()
        if entry is None:
            return
        self._asked = False
        if entry.answer is None:
            assert entry.given_up is not None
            self._slots.give_back(entry.slot)
            out.append(entry.given_up)
        else:
            copy = self._slots.lend() > self.held_allowed
            out.append(Deliver(entry.run, entry.answer, copy, tuple(entry.losses)))
