"""A simulated backend: the same seam as that of processes and of Ray, with simulated workers behind it.

    send ──> waiting here ──latency──> worker ──> node's link ──latency──> consumer's link ──> receiver ──> news

On one machine, links and the receiver cost nothing. The rules of Ray's backend that matter are here as well: two calls
in flight, one after a call that was slow, and no batch is blamed for the loss of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.simulation.assumptions import Assumptions
from benchmarks.simulation.cluster import Cluster
from benchmarks.simulation.engine_clock import EngineClock
from benchmarks.simulation.station import Station
from benchmarks.simulation.transport import SimulatedTransport
from benchmarks.simulation.worker import Job, Result, SimulatedWorker
from stoker.workers import Arrival, Death, News, Request
from stoker.workers.progress import AT_WORK, IDLE, at_batch

_IN_FLIGHT = 2  # calls of a worker, as in workers/ray/crew_member.py
_LONG_S = 2.0  # a call that takes longer: then only one, as there


class SimulatedBackend:
    """The workers of one consumer.

    Args:
        cluster: Where they are.
        job: What they do.
        assumptions: What the way there and back costs.
        transport: Whose slots the results come to lie in.
        clock: Stands still while the simulation computes.
        is_here: Workers are on the consumer's machine: they take requests out of a pipe, which they can be taken back
            from, are not announced, and note which batch they are at.
    """

    def __init__(
        self,
        cluster: Cluster,
        job: Job,
        assumptions: Assumptions,
        transport: SimulatedTransport,
        clock: EngineClock,
        *,
        is_here: bool,
    ) -> None:
        self.ring: Callable[[], object] = lambda: None  # called when there is news
        self.workers: dict[int, SimulatedWorker] = {}
        self.stations = {
            "consumer's link": Station(cluster.calendar, bytes_per_s=assumptions.consumer_bytes_per_s),
            "receiver": Station(cluster.calendar, seconds=assumptions.call_s, bytes_per_s=assumptions.copy_bytes_per_s),
        }
        self.worked_s = 0.0  # by workers that are dead by now
        self._link, self._receiver = self.stations.values()
        self._cluster, self._calendar = cluster, cluster.calendar
        self._job, self._assumptions = job, assumptions
        self._transport, self._clock, self._is_here = transport, clock, is_here
        self._news: list[News] = []

    # The engine's side

    def start(self, worker: int) -> None:
        self._clock.stop()
        made = SimulatedWorker(
            worker,
            self._calendar,
            self._job,
            start_s=self._assumptions.start_s,
            came_up=self._came_up,
            made=self._made,
            died=self._died,
        )
        self.workers[worker] = made
        self._cluster.place(made)
        self._clock.go_on()

    def send(self, worker: int, request: Request) -> None:
        self._clock.stop()
        self.workers[worker].waiting.append(request)
        self._dispatch(self.workers[worker])
        self._clock.go_on()

    def recall(self, worker: int) -> int | None:
        found = self.workers[worker]
        if found.waiting:
            return found.waiting.pop().ticket
        return found.take_back() if self._is_here else None

    def news(self) -> Sequence[News]:
        news, self._news = self._news, []
        return news

    def wait(self, timeout: float | None) -> None:
        raise AssertionError("a simulated consumer is called when there is news")

    def wake(self) -> None: ...

    def progress(self, worker: int) -> int:
        return IDLE

    def end(self, worker: int, *, at_once: bool) -> None:
        raise AssertionError("nobody has a time limit here")

    def pids(self) -> list[int]:
        return []

    def length(self) -> int:
        return self._job.plan.length

    def close(self) -> None: ...

    # The workers' side

    def _dispatch(self, worker: SimulatedWorker) -> None:
        most = 1 if worker.took_s > _LONG_S else _IN_FLIGHT
        while worker.is_up and worker.waiting and len(worker.in_flight) < most:
            request = worker.waiting.popleft()
            worker.expect(request)
            self._calendar.after(self._assumptions.latency_s, partial(worker.receive, request))

    def _came_up(self, worker: SimulatedWorker) -> None:
        if not self._is_here:
            assert worker.node is not None
            self._tell(Arrival(worker.number, worker.node.name))
        self._dispatch(worker)

    def _made(self, worker: SimulatedWorker, result: Result) -> None:
        node = worker.node
        assert node is not None
        node.store(result.nbytes)
        node.link.serve(result.nbytes, lambda: self._on_its_way(worker, result))

    def _on_its_way(self, worker: SimulatedWorker, result: Result) -> None:
        if worker.is_dead:
            return  # it was lost with its node
        self._calendar.after(
            self._assumptions.latency_s,
            lambda: self._link.serve(
                result.nbytes, lambda: self._receiver.serve(result.nbytes, lambda: self._received(worker, result))
            ),
        )

    def _received(self, worker: SimulatedWorker, result: Result) -> None:
        assert worker.node is not None
        if not worker.is_dead:
            worker.node.store(-result.nbytes)
        if worker.is_lost:
            return
        worker.in_flight.popleft()
        now = self._calendar.now
        worker.took_s = now - worker.sent_at.popleft()
        if worker.sent_at:
            worker.sent_at[0] = now
        self._transport.note(result.answer.slot, result.nbytes)
        self._tell(result.answer)
        self._dispatch(worker)

    def _died(self, worker: SimulatedWorker) -> None:
        self._calendar.after(self._assumptions.found_s, lambda: self._lose(worker))

    def _lose(self, worker: SimulatedWorker) -> None:
        worker.is_lost, worker.is_up = True, False
        self.worked_s += worker.busy_s
        calls = worker.in_flight
        progress = IDLE if not calls else at_batch(calls[0].ticket, 1) if self._is_here else AT_WORK
        self._tell(
            Death(worker.number, "the loss of its node", progress, where=worker.node.name if worker.node else "")
        )

    def _tell(self, news: News) -> None:
        self._news.append(news)
        self.ring()
