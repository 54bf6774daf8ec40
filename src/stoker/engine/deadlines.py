"""How long each worker has been at the same batch, for ``timeout=``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from stoker.workers import Death
from stoker.workers.progress import MAKING_THE_DATASET, NOT_UP, is_waiting

_START_S = 60.0  # for a process to be up, imports of the user's modules included, if the timeout is not longer
_MAKING_FACTOR = 10  # times the timeout of a batch, for making the dataset,
_MAKING_S = 5.0  # and this at least: imports may be part of it
_STACK_S = 1.0  # for a worker that is being ended to write down its stack


def limit_at(progress: int, timeout: float) -> float:
    """Seconds that a worker may stay there."""
    if progress == NOT_UP:
        return max(_START_S, timeout)
    return max(_MAKING_FACTOR * timeout, _MAKING_S) if progress == MAKING_THE_DATASET else timeout


@dataclass(slots=True)
class _Watch:
    outstanding: int = 0
    progress: int = NOT_UP
    since: float = 0.0  # it has been there, as far as we know
    look_again: float = 0.0
    ends: int = 0  # times that it was told to end


class Deadlines:
    """Watches the workers that have something to do. A worker that gets on is given time anew.

    One that waits for another is not to blame; it is that other that hangs. Only where all wait, and nobody of ours can
    be the one that is waited for, are they ended.
    """

    def __init__(self, timeout: float, progress: Callable[[int], int]) -> None:
        self._timeout = timeout
        self._progress = progress
        self._watches: dict[int, _Watch] = {}

    def sent(self, worker: int) -> None:
        watch = self._watches.setdefault(worker, _Watch())
        if not watch.outstanding:
            self._renew(worker, watch)
        watch.outstanding += 1

    def answered(self, worker: int) -> None:
        watch = self._watches[worker]
        watch.outstanding -= 1
        watch.ends = 0  # a thread that has just made it is not given up
        self._renew(worker, watch)

    def recalled(self, worker: int) -> None:
        self._watches[worker].outstanding -= 1

    def judged(self, death: Death) -> Death:
        """Forgets the worker. Tells one that was ended for taking too long from one that died of itself."""
        if not self._watches.pop(death.worker, _Watch()).ends:
            return death
        limit = limit_at(death.progress, self._timeout)
        return death._replace(cause=f"a timeout: it took more than {limit:g} s", likely="it hangs")

    def within(self, timeout: float | None) -> float | None:
        """That timeout, or the seconds until somebody is to be looked at if that is sooner; None: for ever."""
        first = min((watch.look_again for watch in self._watches.values() if watch.outstanding), default=math.inf)
        if first == math.inf:
            return timeout
        left = max(0.0, first - monotonic())
        return left if timeout is None else min(left, timeout)

    def overdue(self) -> list[tuple[int, bool]]:
        """The workers to end now, and whether they were told to already and must be ended at once."""
        now = monotonic()
        due = [item for item in self._watches.items() if item[1].outstanding and item[1].look_again <= now]
        return [(worker, watch.ends > 1) for worker, watch in due if self._is_to_end(worker, watch, now)]

    def _is_to_end(self, worker: int, watch: _Watch, now: float) -> bool:
        if self._progress(worker) != watch.progress and not watch.ends:
            self._renew(worker, watch)
            return False
        watch.look_again = now + self._timeout
        if not watch.ends and not self._is_stuck(worker, watch, now):
            return False
        if not watch.ends and is_waiting(watch.progress) and not self._all_wait(now):
            return False
        watch.ends += 1
        watch.look_again = now + _STACK_S if watch.ends == 1 else math.inf
        return True

    def _is_stuck(self, worker: int, watch: _Watch, now: float) -> bool:
        is_there = self._progress(worker) == watch.progress
        return is_there and now - watch.since >= limit_at(watch.progress, self._timeout)

    def _all_wait(self, now: float) -> bool:
        busy = [(worker, watch) for worker, watch in self._watches.items() if watch.outstanding]
        return all(is_waiting(watch.progress) and self._is_stuck(worker, watch, now) for worker, watch in busy)

    def _renew(self, worker: int, watch: _Watch) -> None:
        watch.progress, watch.since = self._progress(worker), monotonic()
        watch.look_again = watch.since + self._timeout
