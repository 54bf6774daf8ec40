"""The backlog: runs that were taken on and not yet delivered."""

from __future__ import annotations

from collections import deque

from stoker.engine.entry import Entry
from stoker.engine.messages import Fail
from stoker.engine.slot_pool import SlotPool
from stoker.plan import Run
from stoker.workers import Answer


class Backlog:
    """Each run has a ticket and a slot, and its turn.

    Args:
        slots: Where runs get their slots, and give them back to.
        in_order: They are due in the order in which they were taken on; else as they are finished, epoch after epoch.
        replacements: That are tried in place of a sample that kills; 0: it is left out.
    """

    def __init__(self, slots: SlotPool, *, in_order: bool, replacements: int = 0) -> None:
        self.entries: dict[int, Entry] = {}  # by ticket
        self.next_ticket = 0
        self._slots = slots
        self._in_order, self._replacements = in_order, replacements
        self._order: deque[int] = deque()  # tickets, in the order of the plan
        self._ready: deque[int] = deque()  # out of order: finished tickets, as they came
        self._abandoned: dict[int, int] = {}  # tickets nobody waits for any more, with their slots
        self._given_up = 0  # of the entries
        self._finished = self.most_finished = 0  # of the entries: now, and the most that there were at a time

    @property
    def first(self) -> int | None:
        """The ticket that is due first by the plan."""
        return self._order[0] if self._order else None

    @property
    def has_given_up(self) -> bool:
        """Whether a batch was given up, and the consumer has not been told yet."""
        return self._given_up > 0

    @property
    def oldest(self) -> int:
        """The lowest ticket of all, or, if there is none, the next."""
        return next(iter(self.entries), self.next_ticket)

    def add(self, run: Run) -> int:
        """A run is taken on, after all others. Its ticket."""
        ticket = self._enter(run)
        self._order.append(ticket)
        return ticket

    def divide(self, ticket: int) -> list[int]:
        """Puts runs of single batches in the place of a longer one."""
        entry = self.entries.pop(ticket)
        self._slots.give_back(entry.slot)
        parts = [self._enter(run) for run in entry.run.split()]
        where = self._order.index(ticket)
        self._order.remove(ticket)
        for part in reversed(parts):
            self._order.insert(where, part)
        return parts

    def answered(self, answer: Answer) -> bool:
        """A worker has answered. False: only a part of the batch was made, in a search, and it is to be sent again."""
        if answer.ticket in self._abandoned:
            self._slots.give_back(self._abandoned.pop(answer.ticket))
            return True
        entry = self.entries[answer.ticket]
        if entry.search is not None:
            entry.probe_made()
            return False
        entry.answer = answer
        self._finished += 1
        self.most_finished = max(self.most_finished, self._finished)
        if not self._in_order:
            self._ready.append(answer.ticket)
        return True

    def give_up(self, ticket: int, given_up: Fail) -> None:
        """The consumer is told so in its turn."""
        self.entries[ticket].given_up = given_up
        self._given_up += 1
        if not self._in_order:
            self._ready.append(ticket)

    def take_due(self) -> Entry | None:
        """Takes out the run whose turn it is, if it is finished or given up."""
        ticket = self._due()
        if ticket is None:
            return None
        entry = self.entries.pop(ticket)
        self._given_up -= entry.given_up is not None
        self._finished -= entry.answer is not None
        return entry

    def abandon(self, with_a_worker: set[int]) -> None:
        """Nobody waits for any of it. The slots of what is with a worker are free when that has answered."""
        for ticket, entry in self.entries.items():
            if ticket in with_a_worker:
                self._abandoned[ticket] = entry.slot
            else:
                self._slots.give_back(entry.slot)
        self.entries.clear()
        self._given_up = self._finished = 0
        self._order.clear()
        self._ready.clear()

    def is_abandoned(self, ticket: int | None) -> bool:
        return ticket in self._abandoned

    def drop(self, ticket: int, *, may_still_write: bool = False) -> None:
        """No worker has an abandoned one any more, but somebody may still write into its slot: then that is lost."""
        slot = self._abandoned.pop(ticket)
        if not may_still_write:
            self._slots.give_back(slot)

    def stays(self, ticket: int) -> bool:
        if ticket not in self.entries:
            return False
        run = self.entries[ticket].run
        return run.stays or run.worker is not None

    def _due(self) -> int | None:
        order = self._order
        if self._in_order:
            if order:
                entry = self.entries[order[0]]
                if entry.answer is not None or entry.given_up is not None:
                    return order.popleft()
        elif self._ready:
            epoch = self.entries[order[0]].run.epoch  # the oldest that has any left
            for ticket in self._ready:
                if self.entries[ticket].run.epoch == epoch:
                    self._ready.remove(ticket)
                    order.remove(ticket)
                    return ticket
        return None

    def _enter(self, run: Run) -> int:
        ticket = self.next_ticket
        self.next_ticket += 1
        self.entries[ticket] = Entry(run, self._slots.take(), self._replacements)
        return ticket
