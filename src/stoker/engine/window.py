"""The window: how many runs may be taken on and not yet delivered."""

from __future__ import annotations

from stoker.engine.roster import Roster


class Window:
    """A number that stays, or that follows the workers where these come and go.

    Args:
        size: Runs, at first.
        share: Runs for each worker that is up, where workers come and go. None: the window stays as it is.
        roster: Knows which workers are up.
    """

    def __init__(self, size: int, share: int | None, roster: Roster) -> None:
        self.size = size
        self._share, self._roster = share, roster
        self._times = 1

    def allow(self, times: int) -> None:
        """From now on each worker that is up has its share so many times."""
        self._times = times
        self.follow_workers()

    def follow_workers(self) -> None:
        """Some may have come, gone or died."""
        if self._share is not None:
            self.size = self._share * self._times * max(self._roster.count_up(), 1)

    def workers_up(self) -> int | None:
        """How many there are, where they come and go."""
        return None if self._share is None else self._roster.count_up()
