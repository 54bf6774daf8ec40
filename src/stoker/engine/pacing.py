"""How many batches a worker makes in one go.

Handing out a run and taking it back has a cost: tens of microseconds between processes, a millisecond on Ray. Batches
that cost as little to make are made several at a time, so that this is shared; all others singly. What is in a
batch does not depend on it.
"""

from __future__ import annotations

_MOST = 64
_WEIGHT = 0.25  # of the newest measurement in the average


class Pacing:
    """The length of runs, from what the last ones cost.

    Args:
        seconds: Of work in a run.
        nbytes: In a run of several batches, at most.
    """

    def __init__(self, seconds: float, nbytes: int) -> None:
        self._target_ns, self._most_bytes = seconds * 1e9, nbytes
        self.size = 1
        self._most = 1
        self._cost_ns = 0.0
        self._nbytes = 0.0

    def limit(self, most: int) -> None:
        """Sets an upper limit, so that the workers' shares of an epoch stay even."""
        self._most = min(most, _MOST)
        self.size = min(self.size, self._most)

    def note(self, batches: int, cost_ns: int, nbytes: int) -> None:
        """Some batches were made, at that cost in all."""
        if self._most <= 1:
            return
        self._cost_ns += _WEIGHT * (cost_ns / batches - self._cost_ns) if self._cost_ns else cost_ns / batches
        self._nbytes += _WEIGHT * (nbytes / batches - self._nbytes) if self._nbytes else nbytes / batches
        affordable = min(self._target_ns / max(self._cost_ns, 1), self._most_bytes / max(self._nbytes, 1))
        self.size = max(1, min(int(affordable), 2 * self.size, self._most))
