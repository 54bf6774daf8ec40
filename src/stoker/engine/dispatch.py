"""The dispatch: which worker is sent which run, and what waits until it can be sent."""

from __future__ import annotations

from collections import deque

from stoker.engine.backlog import Backlog
from stoker.engine.messages import Instruction, Recall, Send
from stoker.engine.roster import Roster


class Dispatch:
    """Sends runs of the backlog to workers. What it decides to do is appended to ``out``.

    Args:
        backlog: Where the runs are.
        roster: Who has what.
    """

    def __init__(self, backlog: Backlog, roster: Roster) -> None:
        self.again: deque[int] = deque()  # tickets to be sent again: their worker has died or was relieved of them
        self.pinned: dict[int, deque[int]] = {}  # to be sent to one worker alone, which has no room yet
        self._backlog = backlog
        self._roster = roster

    def send(self, number: int, ticket: int, out: list[Instruction]) -> None:
        """To that worker, which has room for it."""
        entry = self._backlog.entries[ticket]
        self._roster.sent(number, ticket)
        left_out = entry.left_out(entry.run.samples) if entry.search or entry.losses else ()
        out.append(Send(number, ticket, entry.run, entry.slot, left_out))

    def send_pinned(self, out: list[Instruction]) -> None:
        """What waits for one worker, as far as that has room."""
        for number, line in list(self.pinned.items()):
            while line and self._roster.has_room(number):
                self.send(number, line.popleft(), out)
            if not line:
                del self.pinned[number]

    def send_again(self, out: list[Instruction]) -> None:
        """What waits for any worker, as far as one has room."""
        while self.again and (number := self._roster.least_busy()) is not None:
            self.send(number, self.again.popleft(), out)

    def line_of(self, ticket: int) -> deque[int]:
        """Where it waits until it can be sent."""
        worker = self._backlog.entries[ticket].run.worker
        return self.again if worker is None else self.pinned.setdefault(worker, deque())

    def put_back(self, tickets: list[int]) -> None:
        """They are sent again, in this order and before all others."""
        for ticket in reversed(tickets):
            self.line_of(ticket).appendleft(ticket)

    def relieve(self, overtaken_by: int, out: list[Instruction]) -> None:
        """Takes back what waits behind a slow run, if more than so many others were taken on after it."""
        backlog = self._backlog
        if backlog.next_ticket - backlog.oldest <= overtaken_by:
            return  # as none of them can be

        def is_due(tickets: deque[int]) -> bool:
            is_overtaken = backlog.next_ticket - tickets[-1] > overtaken_by
            return is_overtaken and not any(map(backlog.stays, tickets))  # nobody can tell which would come back

        number = self._roster.to_relieve(is_due)
        if number is not None:
            out.append(Recall(number))

    def clear(self) -> None:
        """Nobody wants what waits any more."""
        self.again.clear()
        self.pinned.clear()
