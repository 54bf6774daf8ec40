"""One worker of a backend: its actor, what it was sent, and what of that is still here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from stoker.workers.backend import Answer, Death, Made, Request
from stoker.workers.progress import AT_WORK, IDLE, MAKING_THE_DATASET, NOT_UP, at_batch
from stoker.workers.ray.actor import Hello, boot

_IN_FLIGHT = 2  # calls: one that is made, and one that waits at the actor, so that it never idles between two
_LONG_S = 2.0  # a call that takes longer: the next one stays here, where it can be taken back, since 1 ms hardly counts


@dataclass(eq=False)
class Call:
    """A request that is with the actor."""

    request: Request
    began: float
    ref: Any = None


@dataclass(eq=False)
class CrewMember:
    """A worker from when its actor was asked for until that is dead. Another one then takes its number.

    Attributes:
        number: Of the worker.
        actor: Ray's handle.
        asked_at: When it was asked for.
        node: It lives there: its address; empty while it does not.
        pid: Of its process on that node.
        ahead: Nanoseconds by which the clock here is ahead of the one there.
        is_here: It is on this machine, so its clock is ours, and its process can be seen.
        is_open: Its dataset is made, or was refused.
        waiting: Requests that are still here.
        in_flight: Calls that the actor has.
        is_lost: Nothing that still comes of it counts.
    """

    number: int
    actor: Any
    asked_at: float
    node: str = ""
    pid: int = 0
    ahead: int = 0
    is_here: bool = False
    is_open: bool = False
    is_lost: bool = False
    stack: str = ""
    waiting: deque[Request] = field(default_factory=deque)
    in_flight: list[Call] = field(default_factory=list)
    _took: float = 0.0  # seconds for the last call

    @property
    def is_busy(self) -> bool:
        return bool(self.waiting or self.in_flight)

    def dispatch(self, call: Callable[[CrewMember, Call], None], *, carefully: bool) -> None:
        """Calls the actor as often as it may be. ``carefully``: once at a time, so that it is clear who kills it."""
        most = 1 if carefully or self._took > _LONG_S else _IN_FLIGHT
        while self.is_open and self.waiting and len(self.in_flight) < most:
            one = Call(self.waiting.popleft(), monotonic())
            self.in_flight.append(one)
            call(self, one)

    def answered(self, call: Call) -> None:
        self.in_flight.remove(call)
        now = monotonic()
        self._took = now - call.began
        for other in self.in_flight:
            other.began = now  # until then it waited

    def came_up(self, hello: Hello, at: int) -> None:
        self.node, self.pid = hello.node, hello.pid
        self.is_here = hello.boot == boot()
        self.ahead = 0 if self.is_here else at - hello.clock  # and less the time that the news took

    def on_our_clock(self, answer: Answer, now: int) -> Answer:
        """The times of its results as our clock has them. The quickest news says best how far that is ahead."""
        made = [result for result in answer.results if isinstance(result, Made)]
        if made and not self.is_here:
            self.ahead = min(self.ahead, now - made[-1].timing.written)
        moved = [result._replace(timing=result.timing.moved(self.ahead, now)) for result in made]
        if len(made) == len(answer.results):
            return answer._replace(results=[*moved])
        times = iter(moved)
        return answer._replace(results=[next(times) if isinstance(one, Made) else one for one in answer.results])

    def recall(self) -> int | None:
        return self.waiting.popleft().ticket if self.waiting else None

    def progress(self) -> int:
        """How far it is, as far as that can be seen from here."""
        if not self.node:
            return NOT_UP
        if not self.is_open:
            return MAKING_THE_DATASET
        return at_batch(self.in_flight[0].request.ticket, 1) if self.in_flight else IDLE

    def death(self, cause: str, *, is_loss_of_node: bool) -> Death:
        """It can only be told which batch has killed it if it had a single one: else none is blamed, and neither is one
        for the loss of a whole node."""
        progress, calls = self.progress(), self.in_flight
        if calls and (is_loss_of_node or len(calls) > 1 or calls[0].request.run.size > 1):
            progress = AT_WORK
        return Death(self.number, cause, progress, stack=self.stack, pid=self.pid, where=self.where)

    @property
    def where(self) -> str:
        actor = self.actor._actor_id.hex()[:8]
        return f"actor {actor} on node {self.node}" if self.node else f"actor {actor}, which no node has started yet"
