"""The crew: the actors that there are, as many as demand calls for."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from time import monotonic, perf_counter_ns
from typing import Any

from stoker.errors import StartError
from stoker.workers.backend import Departure
from stoker.workers.imports import depth_of_workers
from stoker.workers.ray.actor import WATCH, WorkerActor
from stoker.workers.ray.connection import Session
from stoker.workers.ray.crew_member import CrewMember
from stoker.workers.ray.demand import Demand
from stoker.workers.ray.placing import Placing
from stoker.workers.ray.quorum import Quorum
from stoker.workers.ray.receiver import Opened, Receiver, Up

CUT_OFF = (
    "the connection to Ray that the workers of this loader were started by has ended, as by ray.shutdown(): close the "
    "loader before that. Iterating it again starts others"
)


def actor_class(placing: Placing, reserved: Any) -> Any:
    """Ray's class of workers that are placed so. ``reserved``: a placement group of our own, if there is one.

    Raises:
        ValueError: Ray refuses one of the options.
    """
    import ray

    return ray.remote(concurrency_groups={WATCH: 1})(WorkerActor).options(**placing.actor_options(reserved))


class Crew:
    """Asks the cluster for actors, and ends them.

    Args:
        placing: What is asked of the cluster.
        new_actor: Ray's class of actors that are placed so: see ``actor_class``.
        reserved: The placement group that was made for them, which ends with them; None: there is none.
        setup: Ray's reference to the packed job.
        receiver: Gets what actors say.

    Attributes:
        members: The workers that were asked for, by number.
    """

    def __init__(self, placing: Placing, new_actor: Any, reserved: Any, setup: Any, receiver: Receiver) -> None:
        import ray

        self.members: dict[int, CrewMember] = {}
        self._ray, self._setup, self._receiver = ray, setup, receiver
        self._session = Session.here()
        self._new_actor, self._reserved = new_actor, reserved
        self._dormant: list[int] = []  # numbers that the engine knows, and demand has not called for
        self._demand = Demand(placing.first, placing.least, placing.most, monotonic())
        self._quorum = Quorum(placing, self.members)

    def start(self, worker: int) -> None:
        """At once, or when demand calls for it."""
        self.check_session()
        self.members.pop(worker, None)
        if len(self.members) >= self._demand.wanted:
            self._dormant.append(worker)
            return
        self._quorum.asked_for_one()
        actor = self._new_actor.remote(worker, depth_of_workers())
        member = self.members[worker] = CrewMember(worker, actor, monotonic())
        self._receiver.expect(member, actor.hello.remote(), lambda hello: Up(member, hello, perf_counter_ns()))
        self._receiver.expect(member, actor.open.remote(self._setup), lambda _: Opened(member))

    def worked(self, seconds: float) -> None:
        """A worker has made something in that time."""
        self._demand.worked(seconds)

    def check_connected(self) -> None:
        if not self._ray.is_initialized():
            raise StartError(CUT_OFF)

    def check_session(self) -> None:
        """The same for who has opened another one since: what lies in one session is not to be had in the next."""
        if Session.here() != self._session:
            raise StartError(CUT_OFF)

    def review(self) -> None:
        """Who is missing, and how many are needed: starts those that are.

        Raises:
            StartError: Too few are up for too long.
        """
        now = monotonic()
        self._quorum.check(now)
        if self._demand.is_fixed:
            return
        busy = sum(member.is_busy for member in self.members.values())
        up = sum(bool(member.node) for member in self.members.values())
        self._demand.note(now, busy, up, len(self.members) - up)
        while self._dormant and len(self.members) < self._demand.wanted:
            self.start(self._dormant.pop(0))

    def until(self) -> float | None:
        """When to review it again at the latest."""
        moments = [moment for moment in (self._demand.look_again, self._quorum.until()) if moment is not None]
        return min(moments, default=None)

    @property
    def has_too_many(self) -> bool:
        """Whether demand calls for fewer. Never, where their number is fixed."""
        return len(self.members) > self._demand.wanted

    def let_one_go(self, busy: Collection[int]) -> Departure | None:
        """Ends a worker that waits for a place or, if there is none, one that has nothing to do.

        ``busy``: those that have, as far as others know.
        """
        pending = [member for member in self.members.values() if not member.node]
        idle = [member for member in self.members.values() if member.is_open and not member.is_busy]
        for member in [member for member in pending + idle if member.number not in busy][:1]:
            member.is_lost = True
            self.kill(member)
            del self.members[member.number]
            self._dormant.append(member.number)
            return Departure(member.number)
        return None

    def kill(self, member: CrewMember) -> None:
        if self._ray.is_initialized():
            with contextlib.suppress(Exception):  # it is gone already, or the cluster is
                self._ray.kill(member.actor)

    def pids(self) -> list[int]:
        """The processes on this machine that are up."""
        return [member.pid for _, member in sorted(self.members.items()) if member.is_here and not member.is_lost]

    def close(self) -> None:
        for member in self.members.values():
            self.kill(member)
        if self._reserved is not None and self._ray.is_initialized():
            with contextlib.suppress(Exception):  # the cluster is gone
                self._ray.util.remove_placement_group(self._reserved)
