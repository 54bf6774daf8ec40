"""The real time that Stoker's own code takes on the consumer's side, and none of the simulation's."""

from __future__ import annotations

from time import perf_counter_ns


class EngineClock:
    """Runs while the engine does, and stands still while that calls the simulation."""

    def __init__(self) -> None:
        self.ns = 0
        self._since = 0

    def go_on(self) -> None:
        self._since = perf_counter_ns()

    def stop(self) -> None:
        self.ns += perf_counter_ns() - self._since
