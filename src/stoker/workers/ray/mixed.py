"""Worker processes of this machine beside actors of a cluster, for one engine: they answer into the same slots.

Numbers from 0 on are the processes', those behind them the actors'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stoker.workers.backend import Arrival, Backend, Death, News, Request
from stoker.workers.ray.backend import RayBackend


class MixedBackend:
    """Asks each side for its own workers. There is one wait for both: the actors' news wakes the processes' side.

    Args:
        processes: Those here.
        actors: Makes the others, given what to call when there is news of them.
        count: How many processes there are.
    """

    def __init__(self, processes: Backend, actors: Callable[[Callable[[], None]], RayBackend], count: int) -> None:
        self._processes, self._count = processes, count
        try:
            self._actors = actors(processes.wake)
        except BaseException:
            processes.close()
            raise
        self._arrivals: list[News] = []  # of processes, which count as up once they are started

    def start(self, worker: int) -> None:
        self._side(worker).start(worker)
        if worker < self._count:
            self._arrivals.append(Arrival(worker))

    def send(self, worker: int, request: Request) -> None:
        self._side(worker).send(worker, request)

    def recall(self, worker: int) -> int | None:
        return self._side(worker).recall(worker)

    def wait(self, timeout: float | None) -> None:
        if not self._arrivals and not self._actors.has_news:
            self._processes.wait(self._actors.within(timeout))

    def news(self) -> Sequence[News]:
        arrivals, self._arrivals = self._arrivals, []
        return [*self._actors.news(), *arrivals, *self._processes.news()]  # where a departure comes before all else

    def wake(self) -> None:
        self._processes.wake()

    def progress(self, worker: int) -> int:
        return self._side(worker).progress(worker)

    def end(self, worker: int, *, at_once: bool) -> None:
        self._side(worker).end(worker, at_once=at_once)

    def pids(self) -> list[int]:
        return [*self._processes.pids(), *self._actors.pids()]

    def length(self) -> int | Death | None:
        return self._processes.length()

    def close(self) -> None:
        try:
            self._actors.close()
        finally:
            self._processes.close()

    def _side(self, worker: int) -> Backend:
        return self._processes if worker < self._count else self._actors
