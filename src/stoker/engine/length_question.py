"""The question how long a dataset is that only workers have."""

from __future__ import annotations

from collections.abc import Callable

from stoker.engine import death_messages
from stoker.engine.watched_workers import WatchedWorkers
from stoker.errors import ClosedError


class LengthQuestion:
    """Is asked of worker 0, which is started again if it dies over it.

    Args:
        workers: That have the dataset.
        deaths_allowed: Before the dataset is held to be unmakeable.
    """

    def __init__(self, workers: WatchedWorkers, deaths_allowed: int) -> None:
        self._workers = workers
        self._deaths_allowed = deaths_allowed
        self._is_asked = False

    def ask(self, listen: Callable[[], None], is_told_to_stop: Callable[[], bool]) -> int:
        """The answer. ``listen`` waits until there may be one. Whoever is interrupted may ask again."""
        deaths = 0
        if not self._is_asked:  # else the last time was interrupted
            self._is_asked = True
            self._workers.expect_length()
        while True:
            found = self._workers.length()
            if isinstance(found, int):
                return found
            if found is None:
                listen()
                self._workers.end_the_overdue()
                if is_told_to_stop():
                    raise ClosedError("it was closed while it was asked for its length")
                continue
            death = self._workers.judged(found)
            deaths += 1
            if deaths >= self._deaths_allowed:
                raise death_messages.unmakeable(death, deaths)
            death_messages.log_death(death, None)
            self._workers.start(death.worker)
            if death.worker == 0:
                self._workers.expect_length()
