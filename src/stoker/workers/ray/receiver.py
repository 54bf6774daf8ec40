"""The receiver: a thread that copies results out of Ray's object store into local slots, as they come.

Ray says in a thread of its own that a call is done. What is done about it, the copy and the verdict that a worker is
lost, is done by this thread alone, one after the other: so nothing is copied into a slot once its worker was said to be
lost, and the slot is somebody else's. The object is let go of as soon as it was copied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any

import numpy as np

from stoker.interrupts import Background
from stoker.memory import Slots
from stoker.workers.backend import Answer, Failed, Made
from stoker.workers.failure import unpack_error
from stoker.workers.processes.records import read_results
from stoker.workers.ray.actor import Hello, RunResult
from stoker.workers.ray.crew_member import Call, CrewMember


@dataclass(frozen=True)
class Up:
    """An actor has said hello. ``at``: when that came, on our clock."""

    member: CrewMember
    hello: Hello
    at: int


@dataclass(frozen=True)
class Opened:
    """An actor has made its dataset."""

    member: CrewMember


@dataclass(frozen=True)
class Done:
    """A call has come back, and its results lie in their slot."""

    member: CrewMember
    call: Call
    answer: Answer


@dataclass(frozen=True)
class Length:
    """How long the dataset is, or why that is not known."""

    found: int | BaseException

    @classmethod
    def of(cls, told: int | bytes) -> Length:
        return cls(told if isinstance(told, int) else unpack_error(told))


@dataclass(frozen=True)
class Lost:
    """An actor is no more, or nobody waits for it any more."""

    member: CrewMember
    error: BaseException


@dataclass(frozen=True)
class Stack:
    """Where the code of a worker is that takes too long."""

    member: CrewMember
    told: str


Post = Up | Opened | Done | Length | Lost | Stack


class Receiver:
    """Turns what Ray says into posts for the consumer's thread.

    Args:
        slots: The consumer's.
        ring: Called when there is a post.
    """

    def __init__(self, slots: Slots, ring: Callable[[], None]) -> None:
        self.posts: deque[Post] = deque()
        self._slots, self._ring = slots, ring
        self._inbox: SimpleQueue[Callable[[], Post | None] | None] = SimpleQueue()
        self._background = Background(self._live, "stoker-ray")
        self._background.start()

    def expect(self, member: CrewMember, ref: Any, handle: Callable[[Any], Post | None]) -> None:
        """When that object is there, it is handled in this thread; if its worker is lost instead, that is posted."""

        def done(future: Future[Any]) -> None:
            self._inbox.put(lambda: self._handled(member, future, handle))

        ref.future().add_done_callback(done)

    def give_up(self, member: CrewMember, error: BaseException) -> None:
        """After all that has come already, that worker is lost."""
        self._inbox.put(lambda: self._lost(member, error))

    def received(self, member: CrewMember, call: Call, result: RunResult) -> Done:
        """Copies the results of a call into their slot."""
        ticket, number = call.request.ticket, call.request.slot
        size = result.said.end
        try:
            slot = self._slots.get(number)
            buffer, end = slot.reserve(size).buffer, 0
            for part in result.parts:
                np.copyto(np.frombuffer(buffer, np.uint8, len(part), end), part)
                end += len(part)
            said = result.said._replace(worker=member.number, ticket=ticket, slot=number, capacity=slot.capacity)
            answer = member.on_our_clock(read_results(said, slot), perf_counter_ns())
        except MemoryError as error:
            failures: list[Made | Failed] = [Failed(error)] * result.said.results
            answer = Answer(member.number, ticket, number, failures)
        call.ref = None  # which frees the object: the consumer may be long in coming
        return Done(member, call, answer)

    def close(self) -> None:
        self._inbox.put(None)
        self._background.join()

    def _live(self) -> None:
        if not self._slots.borrow(self):
            return
        try:
            while (handle := self._inbox.get()) is not None:
                post = handle()
                if post is not None:
                    self.posts.append(post)
                    self._ring()
                del handle, post  # while it waits for the next one, no object is kept alive
        finally:
            self._slots.give_back(self)

    def _handled(self, member: CrewMember, future: Future[Any], handle: Callable[[Any], Post | None]) -> Post | None:
        if member.is_lost:
            return None
        try:
            return handle(future.result())
        except Exception as error:  # of Ray, or as it was copied here: nobody would wait for this thread, if it ended
            return self._lost(member, error)

    def _lost(self, member: CrewMember, error: BaseException) -> Lost | None:
        if member.is_lost:
            return None
        member.is_lost = True
        return Lost(member, error)
