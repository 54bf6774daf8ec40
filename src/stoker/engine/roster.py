"""The roster: which worker has which tickets, and who gets the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stoker.engine.number_set import NumberSet
from stoker.errors import BugError


@dataclass(slots=True)
class _Worker:
    tickets: deque[int] = field(default_factory=deque)  # sent and not answered, in order
    recall_missed: bool = False  # it had begun all it had: ask again only after it has answered
    stalled: bool = False  # a run had to be taken back from it: it gets no more before it has answered
    is_up: bool = True
    node: str = ""
    room: int | None = None  # how many tickets it has, if it may get another: as it was sorted in last
    can_be_recalled: bool = False  # as it was sorted in last


class Roster:
    """Workers, and what they were sent and have not answered.

    Who gets the next ticket is asked at each event. There may be thousands of workers, so it does not go through all.

    Args:
        workers: How many there are.
        depth: Tickets that one may have at a time.
        announced: A worker gets no tickets before it was said to be up; else it is taken to be from the start.
    """

    def __init__(self, workers: int, depth: int, *, announced: bool = False) -> None:
        self._depth = depth
        self._announced = announced
        self._workers = [_Worker(is_up=not announced) for _ in range(workers)]
        self._turn = 0  # the worker that is looked at first
        self._with_room = [NumberSet() for _ in range(depth)]  # who may get another ticket, by how many they have
        self._to_recall = NumberSet()  # who has some that can be asked back
        for number in range(workers):
            self._sort_in(number)

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
        return len(worker.tickets) < self._depth and not worker.stalled and worker.is_up

    def is_anybody_up(self) -> bool:
        return any(worker.is_up for worker in self._workers)

    def count_up(self) -> int:
        return sum(worker.is_up for worker in self._workers)

    def nodes(self) -> tuple[str, ...]:
        """Where each worker is."""
        return tuple(worker.node for worker in self._workers)

    def arrived(self, number: int, node: str) -> None:
        self._workers[number].is_up, self._workers[number].node = True, node
        self._sort_in(number)

    def left(self, number: int) -> None:
        """It gets no more tickets; it may have some, and answers them."""
        self._workers[number].is_up = False
        self._sort_in(number)

    def least_busy(self) -> int | None:
        """The worker to give the next ticket to, or None if all have enough.

        They take turns: one that gets nothing for long would keep open what it had last, as of a cache.
        """
        for workers in self._with_room:
            number = workers.next_from(self._turn)
            if number is not None:
                return number
        return None

    def sent(self, number: int, ticket: int) -> None:
        self._workers[number].tickets.append(ticket)
        self._turn = number + 1
        self._sort_in(number)

    def answered(self, number: int, ticket: int) -> None:
        worker = self._workers[number]
        try:
            worker.tickets.remove(ticket)
        except ValueError:
            raise BugError(f"worker {number} answered ticket {ticket}, which it never had") from None
        worker.recall_missed = worker.stalled = False
        self._sort_in(number)

    def died(self, number: int) -> deque[int]:
        """What it had. Another takes its place, with nothing."""
        dead = self._workers[number]
        up = not self._announced
        self._workers[number] = _Worker(is_up=up, room=dead.room, can_be_recalled=dead.can_be_recalled)
        self._sort_in(number)
        return dead.tickets

    def recalled(self, number: int, ticket: int | None, *, stalls: bool) -> None:
        """``ticket``: what came back, if anything. ``stalls``: it is sent to another, since this one is slow."""
        worker = self._workers[number]
        if ticket is None:
            worker.recall_missed = True
        else:
            worker.tickets.remove(ticket)
            worker.stalled = worker.stalled or stalls
        self._sort_in(number)

    def to_relieve(self, is_due: Callable[[deque[int]], bool]) -> int | None:
        """The first worker that has something waiting behind what it is at, of which ``is_due`` says to take it."""
        return next((number for number in self._to_recall if is_due(self._workers[number].tickets)), None)

    def _sort_in(self, number: int) -> None:
        """After each change of a worker."""
        worker = self._workers[number]
        count = len(worker.tickets)
        room = count if count < self._depth and worker.is_up and not worker.stalled else None
        if room != worker.room:
            if worker.room is not None:
                self._with_room[worker.room].remove(number)
            if room is not None:
                self._with_room[room].add(number)
            worker.room = room
        can_be_recalled = count > 1 and not worker.recall_missed
        if can_be_recalled != worker.can_be_recalled:
            (self._to_recall.add if can_be_recalled else self._to_recall.remove)(number)
            worker.can_be_recalled = can_be_recalled
