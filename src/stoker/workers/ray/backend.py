"""Ray: workers that are actors of a cluster, wherever that has placed them.

    send ──> waiting here ──run──> in flight, at the actor ──object store──> receiver ──copy──> slot ──> news
               │                                               (a thread)
               └── recall: only what is still here

Two calls at most are in flight to an actor. Ray restarts nothing and repeats nothing: if an actor is lost, or one of
its results, the worker is dead, and the engine sends its runs to others, as with all backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from stoker.errors import StartError
from stoker.interrupts import Bell
from stoker.workers.backend import Allowance, Arrival, Death, Made, News, Request
from stoker.workers.processes.records import pack_item
from stoker.workers.progress import AT_WORK, NOT_UP
from stoker.workers.ray.causes import cannot_start, cause_of, check_versions, is_loss_of_node
from stoker.workers.ray.crew import CUT_OFF, Crew, actor_class
from stoker.workers.ray.crew_member import Call, CrewMember
from stoker.workers.ray.placing import Placing
from stoker.workers.ray.receiver import Done, Length, Lost, Opened, Post, Receiver, Stack, Up
from stoker.workers.transport import SlotTransport

_CAREFUL = 256  # answers: for so long after a death that nobody is blamed for, calls are made one at a time
_LOOK_S = 5.0  # after which it is looked whether the session is the same: calls to one that ended are not answered


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
        actor_class(placing, None)  # raises what Ray refuses, before there are places that would have to be given back
        reserved = placing.reserve()
        new_actor = actor_class(placing, reserved)  # before there is a thread that would have to be ended
        self._bell = Bell()
        self._receiver = Receiver(transport.slots, ring or self._bell.ring)
        self._crew = Crew(placing, new_actor, reserved, setup, self._receiver)
        self._untold: list[News] = []
        self._look_again = monotonic() + _LOOK_S
        self._careful = 0  # so many answers are still to come for which calls are made one at a time
        self._length: Length | None = None
        self._is_length_asked = False
        self._closed = False

    def start(self, worker: int) -> None:
        self._crew.start(worker)

    def send(self, worker: int, request: Request) -> None:
        member = self._crew.members[worker]
        if request.item is not None:
            request = request._replace(item=pack_item(request.item))
        member.waiting.append(request)
        self._dispatch(member)

    def recall(self, worker: int) -> int | None:
        member = self._crew.members.get(worker)
        return None if member is None else member.recall()

    @property
    def has_news(self) -> bool:
        return bool(self._receiver.posts or self._untold)

    def wait(self, timeout: float | None) -> None:
        if not self.has_news:
            self._bell.wait(self.within(timeout))

    def within(self, timeout: float | None) -> float:
        """That timeout, or the seconds until something is to be looked at here if that is sooner."""
        until = self._crew.until()
        left = _LOOK_S if until is None else min(_LOOK_S, max(0.0, until - monotonic()))
        return left if timeout is None else min(timeout, left)

    def news(self) -> Sequence[News]:
        self._look()
        news, self._untold = self._untold, []
        return news

    def wake(self) -> None:
        self._bell.ring()

    def progress(self, worker: int) -> int:
        member = self._crew.members.get(worker)
        return NOT_UP if member is None else member.progress()

    def end(self, worker: int, *, at_once: bool) -> None:
        """It says where its code is first. If it cannot even be killed, as on a node that was stopped, it counts as
        lost all the same: what still comes of it is not listened to."""
        member = self._crew.members[worker]
        if member.is_open and not at_once:
            stack = member.actor.stack.remote()
            self._receiver.expect(member, stack, lambda told: Stack(member, told))
        else:
            self._crew.kill(member)
            self._receiver.give_up(member, TimeoutError("it took too long, and was killed"))

    def pids(self) -> list[int]:
        return self._crew.pids()

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
        self._crew.close()
        self._receiver.close()

    def _ask_length(self) -> None:
        member = next((member for member in self._crew.members.values() if member.is_open), None)
        if member is not None and not self._is_length_asked:
            self._is_length_asked = True
            self._receiver.expect(member, member.actor.length.remote(), Length.of)

    def _look(self) -> None:
        """At what the receiver has posted, who is missing, and how many are needed."""
        self._crew.check_connected()
        if monotonic() >= self._look_again:  # not each time: it takes as long as some batches do
            self._crew.check_session()
            self._look_again = monotonic() + _LOOK_S
        posts = self._receiver.posts
        for _ in range(len(posts)):
            self._note(posts.popleft())
        self._crew.review()
        if self._crew.has_too_many:  # one at a time, and told before all else: the engine would send it something
            busy = {one.worker for one in self._untold if not isinstance(one, Allowance)}  # as far as the engine knows
            departure = self._crew.let_one_go(busy)
            self._untold[:0] = [] if departure is None else [departure]

    def _note(self, post: Post) -> None:
        if isinstance(post, Length):
            self._length = post
        elif self._crew.members.get(post.member.number) is not post.member:
            pass  # it came up just as it was let go
        elif isinstance(post, Done):
            post.member.answered(post.call)
            self._careful = max(0, self._careful - 1)
            made = [result.timing for result in post.answer.results if isinstance(result, Made)]
            self._crew.worked(sum(timing.written - timing.began for timing in made) / 1e9)
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
        self._crew.check_session()  # with it, all its actors have ended
        self._crew.kill(member)
        if not member.node and (refusal := cannot_start(error)) is not None:
            raise refusal
        with_node = is_loss_of_node(error)
        if with_node and not member.node:  # Ray had put it on a node that was gone already, and is asked for another
            self.start(member.number)
            return
        death = member.death(cause_of(error), is_loss_of_node=with_node)
        if death.progress == AT_WORK and not with_node:
            self._careful = _CAREFUL
        self._untold.append(death)

    def _dispatch(self, member: CrewMember) -> None:
        member.dispatch(self._call, carefully=self._careful > 0)

    def _call(self, member: CrewMember, call: Call) -> None:
        try:
            call.ref = member.actor.run.remote(call.request)
        except Exception as error:  # an actor that is dead takes calls: it is one of another session
            raise StartError(CUT_OFF) from error
        self._receiver.expect(member, call.ref, lambda result: self._receiver.received(member, call, result))
