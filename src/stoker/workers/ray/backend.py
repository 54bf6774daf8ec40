"""Ray: workers that are actors of a cluster, wherever that has placed them.

    send ──> waiting here ──run──> in flight, at the actor ──object store──> receiver ──copy──> slot ──> news
               │                                               (a thread)
               └── recall: only what is still here

Two calls at most are in flight to an actor. Ray restarts nothing and repeats nothing: if an actor is lost, or one of
its results, the worker is dead, and the engine sends its runs to others, as with all backends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter_ns
from typing import Any

from stoker.errors import StartError
from stoker.interrupts import Bell
from stoker.workers.backend import Allowance, Arrival, Death, Departure, Made, News, Request
from stoker.workers.imports import depth_of_workers
from stoker.workers.processes.records import pack_item
from stoker.workers.progress import AT_WORK, NOT_UP
from stoker.workers.ray.actor import WATCH, WorkerActor
from stoker.workers.ray.causes import cannot_start, cause_of, check_versions, is_loss_of_node
from stoker.workers.ray.crew_member import Call, CrewMember
from stoker.workers.ray.demand import Demand
from stoker.workers.ray.muster import Muster
from stoker.workers.ray.placing import Placing
from stoker.workers.ray.receiver import Done, Length, Lost, Opened, Post, Receiver, Stack, Up
from stoker.workers.transport import SlotTransport

_CAREFUL = 256  # answers: for so long after a death that nobody is blamed for, calls are made one at a time
_LOOK_S = 5.0  # after which it is looked whether there is a connection still: nothing comes of calls where it has ended
_CUT_OFF = (
    "the connection to Ray that the workers of this loader were started by has ended, as by ray.shutdown(): close the "
    "loader before that. Iterating it again starts others"
)


class RayBackend:
    """Makes actors, calls them, and tells what became of it.

    Args:
        placing: What is asked of the cluster.
        setup: Ray's reference to the packed job.
        transport: Whose slots the results are copied into.
        ring: Called, from any thread, when there is something to look at. None: ``wait`` waits for it here.
    """

    def __init__(
        self, placing: Placing, setup: Any, transport: SlotTransport, ring: Callable[[], None] | None = None
    ) -> None:
        import ray

        self._ray, self._setup = ray, setup
        actor = ray.remote(concurrency_groups={WATCH: 1})(WorkerActor)
        self._reserved = placing.reserve()
        self._new_actor = actor.options(**placing.actor_options(self._reserved))
        self._bell = Bell()
        self._receiver = Receiver(transport.slots, ring or self._bell.ring)
        self._members: dict[int, CrewMember] = {}
        self._dormant: list[int] = []  # numbers that the engine knows, and demand has not called for
        self._demand = Demand(placing.first, placing.least, placing.most, monotonic())
        self._muster = Muster(placing, self._members)
        self._untold: list[News] = []
        self._careful = 0  # so many answers are still to come for which calls are made one at a time
        self._length: Length | None = None
        self._is_length_asked = False
        self._closed = False

    def start(self, worker: int) -> None:
        self._members.pop(worker, None)
        if len(self._members) >= self._demand.wanted:
            self._dormant.append(worker)
            return
        self._muster.asked_for_one()
        actor = self._new_actor.remote(worker, depth_of_workers())
        member = self._members[worker] = CrewMember(worker, actor, monotonic())
        self._receiver.expect(member, actor.hello.remote(), lambda hello: Up(member, hello, perf_counter_ns()))
        self._receiver.expect(member, actor.open.remote(self._setup), lambda _: Opened(member))

    def send(self, worker: int, request: Request) -> None:
        member = self._members[worker]
        if request.item is not None:
            request = request._replace(item=pack_item(request.item))
        member.waiting.append(request)
        self._dispatch(member)

    def recall(self, worker: int) -> int | None:
        member = self._members.get(worker)
        return None if member is None else member.recall()

    @property
    def has_news(self) -> bool:
        return bool(self._receiver.posts or self._untold)

    def wait(self, timeout: float | None) -> None:
        if not self.has_news:
            self._bell.wait(self.within(timeout))

    def within(self, timeout: float | None) -> float:
        """That timeout, or the seconds until something is to be looked at here if that is sooner."""
        moments = [moment for moment in (self._demand.look_again, self._muster.until()) if moment is not None]
        left = [_LOOK_S, *(max(0.0, moment - monotonic()) for moment in moments)]
        return min(left if timeout is None else [timeout, *left])

    def news(self) -> Sequence[News]:
        self._look()
        news, self._untold = self._untold, []
        return news

    def wake(self) -> None:
        self._bell.ring()

    def place(self, worker: int) -> int:
        member = self._members.get(worker)
        return NOT_UP if member is None else member.place()

    def end(self, worker: int, *, at_once: bool) -> None:
        """It says where its code is first. If it cannot even be killed, as on a node that was stopped, it counts as
        lost all the same: what still comes of it is not listened to."""
        member = self._members[worker]
        if member.is_open and not at_once:
            stack = member.actor.stack.remote()
            self._receiver.expect(member, stack, lambda told: Stack(member, told))
        else:
            self._kill(member)
            self._receiver.give_up(member, TimeoutError("it took too long, and was killed"))

    def pids(self) -> list[int]:
        return [member.pid for _, member in sorted(self._members.items()) if member.is_here and not member.is_lost]

    def length(self) -> int | Death | None:
        self._look()
        for one in self._untold:
            if isinstance(one, Death):
                self._untold.remove(one)
                self._is_length_asked = False
                return one
        if self._length is None:
            self._ask_length()
            return None
        found, self._length, self._is_length_asked = self._length.found, None, False
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for member in self._members.values():
            self._kill(member)
        if self._reserved is not None and self._ray.is_initialized():
            with contextlib.suppress(Exception):  # the cluster is gone
                self._ray.util.remove_placement_group(self._reserved)
        self._receiver.close()

    def _ask_length(self) -> None:
        member = next((member for member in self._members.values() if member.is_open), None)
        if member is not None and not self._is_length_asked:
            self._is_length_asked = True
            self._receiver.expect(member, member.actor.length.remote(), Length.of)

    def _look(self) -> None:
        """At what the receiver has posted, who is missing, and how many are needed."""
        if not self._ray.is_initialized():
            raise StartError(_CUT_OFF)
        posts = self._receiver.posts
        for _ in range(len(posts)):
            self._note(posts.popleft())
        self._muster.check(monotonic())
        self._follow_demand()

    def _note(self, post: Post) -> None:
        if isinstance(post, Length):
            self._length = post
        elif self._members.get(post.member.number) is not post.member:
            pass  # it came up just as it was let go
        elif isinstance(post, Done):
            post.member.answered(post.call)
            self._careful = max(0, self._careful - 1)
            made = [result.timing for result in post.answer.results if isinstance(result, Made)]
            self._demand.worked(sum(timing.written - timing.began for timing in made) / 1e9)
            self._untold.append(post.answer)
            self._dispatch(post.member)
        elif isinstance(post, Up):
            check_versions(post.hello.versions)
            post.member.came_up(post.hello, post.at)
            self._untold.append(Arrival(post.member.number, post.member.node))
        elif isinstance(post, Opened):
            post.member.is_open = True
            self._dispatch(post.member)
        elif isinstance(post, Lost):
            self._lose(post.member, post.error)
        else:
            post.member.stack = post.told
            self.end(post.member.number, at_once=True)

    def _lose(self, member: CrewMember, error: BaseException) -> None:
        self._kill(member)
        if not member.node and (refusal := cannot_start(error)) is not None:
            raise refusal
        with_node = is_loss_of_node(error)
        if with_node and not member.node:  # Ray had put it on a node that was gone already, and is asked for another
            self.start(member.number)
            return
        death = member.death(cause_of(error), is_loss_of_node=with_node)
        if death.place == AT_WORK and not with_node:
            self._careful = _CAREFUL
        self._untold.append(death)

    def _dispatch(self, member: CrewMember) -> None:
        member.dispatch(self._call, carefully=self._careful > 0)

    def _call(self, member: CrewMember, call: Call) -> None:
        try:
            call.ref = member.actor.run.remote(call.request)
        except Exception as error:  # an actor that is dead takes calls: it is one of another session
            raise StartError(_CUT_OFF) from error
        self._receiver.expect(member, call.ref, lambda result: self._receiver.received(member, call, result))

    def _follow_demand(self) -> None:
        if self._demand.is_fixed:
            return
        now = monotonic()
        busy = sum(member.is_busy for member in self._members.values())
        up = sum(bool(member.node) for member in self._members.values())
        self._demand.note(now, busy, up, len(self._members) - up)
        while self._dormant and len(self._members) < self._demand.wanted:
            self.start(self._dormant.pop(0))
        if len(self._members) > self._demand.wanted:
            self._let_one_go()

    def _let_one_go(self) -> None:
        """One at a time, and told before all else: the engine, which knows it to be up, would send it something. One
        that waits for a place goes before one that works."""
        busy = {one.worker for one in self._untold if not isinstance(one, Allowance)}  # as far as the engine knows
        pending = [member for member in self._members.values() if not member.node]
        idle = [member for member in self._members.values() if member.is_open and not member.is_busy]
        for member in [member for member in pending + idle if member.number not in busy][:1]:
            member.is_lost = True
            self._kill(member)
            del self._members[member.number]
            self._dormant.append(member.number)
            self._untold.insert(0, Departure(member.number))

    def _kill(self, member: CrewMember) -> None:
        if self._ray.is_initialized():
            with contextlib.suppress(Exception):  # it is gone already, or the cluster is
                self._ray.kill(member.actor)
