"""What would change with other settings: a loader played through with the durations that were measured.

The model is the engine without its details: workers that share one queue, credit for ``prefetch`` batches a worker, and
a consumer whose own ``next()`` sends out the next requests; or a thread that moves batches to a device, one after the
other, and does so ahead of the consumer. Durations are drawn from the measured distributions, always
the same ones, so that the same figures give the same answer.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from stoker.observe.distribution import Distribution

_UNITS = 256  # that are played through


@dataclass(frozen=True)
class Durations:
    """How long everything takes, in seconds.

    Attributes:
        fetch: ``dataset[i]``, for each unit of work.
        write: Its collation.
        step: Of the consumer, for each batch.
        batches: In a unit of work.
        own: What the consumer does itself in ``next()``, for each batch: to open it, and ``to``.
        cpu: The part of a worker's time in which it computes, or wants to.
        consumer_cpu: The cores that the consumer keeps busy.
        move: What a batch takes to the device, in a thread ahead of the consumer.
        ahead: Batches that this thread moves ahead; 0: there is none.
    """

    fetch: Distribution
    write: Distribution
    step: Distribution
    batches: float = 1.0
    own: float = 0.0
    cpu: float = 0.0
    consumer_cpu: float = 0.0
    move: float = 0.0
    ahead: int = 0

    @property
    def making(self) -> float:
        """Of a unit of work, on average."""
        return self.fetch.mean + self.write.mean

    @property
    def taking(self) -> float:
        """The least time in which the consumer can take a unit of work, on average."""
        return self.batches * max(self.step.mean + self.own, self.move)


@dataclass(frozen=True)
class Arrangement:
    """What can be changed."""

    workers: int
    prefetch: int = 2
    in_order: bool = True


def wait_share(durations: Durations, now: Arrangement, then: Arrangement, cores: int = 0) -> float:
    """The share of its time that the consumer would wait.

    Args:
        durations: As they were measured.
        now: How it was measured.
        then: How it would be.
        cores: That there are; 0: not known.
    """
    stretch = _crowding(durations, then, cores) / _crowding(durations, now, cores)
    fetches, writes = drawn(durations.fetch, 1), drawn(durations.write, 2)
    making = [stretch * (fetch + write) for fetch, write in zip(fetches, writes, strict=True)]
    return _played(making, drawn(durations.step, 3), durations, then)


def drawn(durations: Distribution, seed: int) -> list[float]:
    """So many durations as are played through, with these percentiles, in an order that is always the same."""
    if not durations.count:
        return [0.0] * _UNITS
    found, reached, at = [], 0, 0
    for upper, count in durations.counts:
        reached += count
        while at < _UNITS and (at + 0.5) / _UNITS * durations.count <= reached:
            found.append(min(upper, durations.largest))
            at += 1
    buckets = sum(min(upper, durations.largest) * count for upper, count in durations.counts)
    found = [duration * durations.total / buckets for duration in found]  # of each bucket the upper end is known
    random.Random(seed).shuffle(found)
    return found


def _crowding(durations: Durations, arrangement: Arrangement, cores: int) -> float:
    """How much longer everything takes because more want to compute than there are cores."""
    if not cores:
        return 1.0
    wanted = durations.cpu * arrangement.workers + durations.consumer_cpu
    return 1.0 + durations.cpu * max(wanted / cores - 1.0, 0.0)


def _played(making: list[float], steps: list[float], durations: Durations, arrangement: Arrangement) -> float:
    crew = _Crew(making, arrangement)
    warm = min(crew.window, len(steps) // 2)  # until then the first requests are sent
    own, move = durations.batches * durations.own, durations.batches * durations.move
    now = waiting = running = moved = 0.0
    taken = deque([0.0] * durations.ahead, maxlen=durations.ahead or 1)  # when the consumer had the last ones
    for number, step in enumerate(steps):
        asked = now
        if durations.ahead:
            moved = crew.give(max(moved, taken[0])) + move
            now = max(now, moved) + own
        else:
            now = crew.give(now + own)
        taken.append(now)
        if number >= warm:
            waiting += now - asked
            running += now - asked + durations.batches * step
        now += durations.batches * step
    return waiting / running if running else 0.0


class _Crew:
    """Workers, who get their requests while the consumer is in ``next()``."""

    def __init__(self, making: list[float], arrangement: Arrangement) -> None:
        self.window = arrangement.workers * arrangement.prefetch
        self._making, self._in_order = making, arrangement.in_order
        self._free = [0.0] * arrangement.workers  # when each of them is
        self._under_way: list[tuple[float, int]] = []  # when it is done, and its number
        self._done: list[int] = []
        self._sent = self._taken = 0

    def give(self, now: float) -> float:
        """The consumer asks for the next one. When it has it."""
        while True:
            self._hear(now)
            if self._done and (not self._in_order or self._done[0] == self._taken):
                heappop(self._done)
                self._taken += 1
                self._send(now)
                return now
            now = max(now, self._under_way[0][0])

    def _hear(self, now: float) -> None:
        while self._under_way and self._under_way[0][0] <= now:
            heappush(self._done, heappop(self._under_way)[1])
        self._send(now)

    def _send(self, now: float) -> None:
        while self._sent < min(len(self._making), self._taken + self.window):
            end = max(now, heappop(self._free)) + self._making[self._sent]
            heappush(self._free, end)
            heappush(self._under_way, (end, self._sent))
            self._sent += 1
