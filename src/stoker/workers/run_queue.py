"""The run queue: how long threads and processes were on a core, and how long they waited for one that others had."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class CoreTime(NamedTuple):
    """Nanoseconds that a thread was on a core, and that it waited for one."""

    running: int
    delayed: int

    def since(self, before: CoreTime) -> CoreTime:
        return CoreTime(self.running - before.running, self.delayed - before.delayed)


def core_time_of(folder: str) -> CoreTime | None:
    """Of a process (its main thread) or a thread, by its folder in /proc; None where the system does not tell."""
    try:
        with open(f"{folder}/schedstat") as file:  # twice as quick as pathlib, and there may be many
            running, delayed, _ = file.read().split()
        return CoreTime(int(running), int(delayed))
    except (OSError, ValueError):
        return None


def run_delay(pids: Iterable[int]) -> int:
    """Nanoseconds that processes have waited for a core since they were started, over all of them."""
    return sum(time.delayed for pid in pids if (time := core_time_of(f"/proc/{pid}")) is not None)
