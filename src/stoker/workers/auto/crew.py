"""The crew: which worker processes are up, and which are coming, resting or leaving.

    dormant ──start──> coming ──it is ready──> up <──────────> resting ──has nothing to do──> leaving ──> dormant
                          │                  Arrival         Departure    (no trial runs)
                          └── cannot start, or make the dataset: the trial has failed

The engine knows a worker that is ``up`` only. One that makes its dataset for a minute is none of its business before
it is ready, so nothing waits for it; one that rests is alive, so that a trial of fewer workers costs no start.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection

from stoker.workers.auto.tuning import Tuning
from stoker.workers.backend import Arrival, Death, Departure
from stoker.workers.processes.backend import ProcessesBackend
from stoker.workers.progress import IDLE, REFUSING

log = logging.getLogger("stoker")


class Crew:
    """Follows what the tuning wants.

    Args:
        processes: That are started and retired.
        tuning: Says how many there should be.
    """

    def __init__(self, processes: ProcessesBackend, tuning: Tuning) -> None:
        self.up: set[int] = set()
        self.coming: set[int] = set()
        self.leaving: set[int] = set()
        self._processes, self._tuning = processes, tuning
        self._dormant: list[int] = []  # a heap: the lowest number comes first
        self._resting: set[int] = set()
        self._lost: set[int] = set()  # have died, and the engine starts them again
        self._sent: dict[int, int] = {}  # requests that a worker has not answered, if it has any
        self._changes: list[Arrival | Departure] = []  # that the engine was not told of yet
        self._has_warned = False

    @property
    def has_idle_worker(self) -> bool:
        return len(self.up) > len(self._sent)

    def start(self, worker: int) -> None:
        """At the start, or in place of a dead one: it is told of at once, as somebody may wait for it."""
        self.up.discard(worker)
        self._lost.discard(worker)
        if len(self.up) >= self._tuning.wanted:
            heapq.heappush(self._dormant, worker)
            return
        self._processes.start(worker)
        self._take_up(worker)

    def sent(self, worker: int) -> None:
        """It has one request more to answer."""
        self._sent[worker] = self._sent.get(worker, 0) + 1

    def answered(self, worker: int) -> None:
        """It has one fewer."""
        left = self._sent.pop(worker, 0) - 1
        if left > 0:
            self._sent[worker] = left

    def died(self, death: Death) -> bool:
        """Whether the engine is to be told: it is not where that knows nothing of the worker, or has let it go."""
        worker = death.worker
        if worker in self.leaving:
            self.leaving.discard(worker)
        elif worker in self.coming:
            self._refuse(worker, f"{death.cause} {death.phase}")
        elif worker in self._resting and worker not in self._sent:
            self._resting.discard(worker)
        else:
            self.up.discard(worker)
            self._resting.discard(worker)
            self._lost.add(worker)
            self._sent.pop(worker, None)
            self._tuning.died()
            return True
        heapq.heappush(self._dormant, worker)
        return False

    def welcome(self) -> None:
        """Those that were added and are ready."""
        for worker in list(self.coming):
            progress = self._processes.progress(worker)
            if progress == IDLE:
                self.coming.discard(worker)
                self._take_up(worker)
            elif progress == REFUSING:
                self._refuse(worker, "it could not make the dataset")
                self._retire(worker)

    def follow(self, answering: Collection[int]) -> list[Arrival | Departure]:
        """Adds workers and lets some rest; what the engine is to be told, of these and of those that are ready.

        ``answering``: the engine has not heard yet what these have made, and would try to take it back.
        """
        tuning = self._tuning
        while self._count() < tuning.wanted and self._resting:
            self._take_up(min(self._resting))
        while self._count() < tuning.wanted and self._dormant:
            self._add(heapq.heappop(self._dormant))
        while len(self.up) > tuning.wanted:
            self._let_rest(max(self.up))
        if not tuning.is_trying:
            for worker in self._resting.difference(self._sent, answering):
                self._resting.discard(worker)
                self._retire(worker)
        changes, self._changes = self._changes, []
        return changes

    def _count(self) -> int:
        return len(self.up) + len(self.coming) + len(self._lost)

    def _add(self, worker: int) -> None:
        self.coming.add(worker)
        try:
            self._processes.start(worker, is_needed=False)
        except OSError as error:
            self._refuse(worker, str(error))
            heapq.heappush(self._dormant, worker)

    def _refuse(self, worker: int, cause: str) -> None:
        """One that was added is of no use: there are enough without it."""
        self.coming.discard(worker)
        self._tuning.refused(len(self.up))
        level, self._has_warned = logging.DEBUG if self._has_warned else logging.WARNING, True
        log.log(
            level,
            'workers="auto": one more worker, in addition to %d, could not be started: %s. They go on without it.',
            len(self.up),
            cause.strip(),
        )

    def _retire(self, worker: int) -> None:
        self.leaving.add(worker)
        self._processes.retire(worker)

    def _take_up(self, worker: int) -> None:
        self._resting.discard(worker)
        self.up.add(worker)
        self._tell(Arrival(worker), instead_of=Departure(worker))

    def _let_rest(self, worker: int) -> None:
        self.up.discard(worker)
        self._resting.add(worker)
        self._tell(Departure(worker), instead_of=Arrival(worker))

    def _tell(self, change: Arrival | Departure, instead_of: Arrival | Departure) -> None:
        """Unless the engine was not told of the opposite yet, and need not be."""
        if instead_of in self._changes:
            self._changes.remove(instead_of)
        else:
            self._changes.append(change)
