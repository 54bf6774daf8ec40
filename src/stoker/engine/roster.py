"""The roster: which worker has which tickets, and who gets the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from stoker.errors import BugError


@dataclass(slots=True)
class _Worker:
    tickets: deque[int] = field(default_factory=deque)  # sent and not answered, in order
    recall_missed: bool = False  # it had begun all it had: ask again only after it has answered
    stalled: bool = False  # a run had to be taken back from it: it gets no more before it has answered


class Roster:
    """Workers, and what they were sent and have not answered.

    Args:
        workers: How many there are.
        depth: Tickets that one may have at a time.
    """

    def __init__(self, workers: int, depth: int) -> None:
        self._depth = depth
        self._workers = [_Worker() for _ in range(workers)]
        self._turn = 0  # the worker that is looked at first

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def is_working(self) -> bool:
        return any(worker.tickets for worker in self._workers)

    def busy(self) -> int:
        """How many workers have something to do."""
        return sum(bool(worker.tickets) for worker in self._workers)

    def tickets(self) -> set[int]:
        """All that are with a worker."""
        return {ticket for worker in self._workers for ticket in worker.tickets}

    def queued(self) -> Iterator[int]:
        """Each worker as often as it has a ticket that it can't have begun yet."""
        return (number for number, worker in enumerate(self._workers) for _ in range(len(worker.tickets) - 1))

    def is_idle(self, number: int) -> bool:
        return not self._workers[number].tickets

    def has_room(self, number: int) -> bool:
        worker = self._workers[number]
        return len(worker.tickets) < self._depth and not worker.stalled

    def least_busy(self) -> int | None:
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

    def sent(self, number: int, ticket: int) -> None:
        self._workers[number].tickets.append(ticket)
        self._turn = number + 1

    def answered(self, number: int, ticket: int) -> None:
        worker = self._workers[number]
        try:
            worker.tickets.remove(ticket)
        except ValueError:
            raise BugError(f"worker {number} answered ticket {ticket}, which it never had") from None
        worker.recall_missed = worker.stalled = False

    def died(self, number: int) -> deque[int]:
        """What it had. Another takes its place, with nothing."""
        tickets = self._workers[number].tickets
        self._workers[number] = _Worker()
        return tickets

    def recalled(self, number: int, ticket: int | None, *, stalls: bool) -> None:
        """``ticket``: what came back, if anything. ``stalls``: it is sent to another, since this one is slow."""
        worker = self._workers[number]
        if ticket is None:
            worker.recall_missed = True
            return
        worker.tickets.remove(ticket)
        worker.stalled = worker.stalled or stalls

    def to_relieve(self, is_due: Callable[[deque[int]], bool]) -> int | None:
        """The first worker that has something waiting behind what it is at, of which ``is_due`` says to take it."""
        for number, worker in enumerate(self._workers):
            if len(worker.tickets) > 1 and not worker.recall_missed and is_due(worker.tickets):
                return number
        return None
