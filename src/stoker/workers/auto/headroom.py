"""Headroom: how much memory there is for more workers, and how much each of them would take."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Callable

from stoker.workers.processes.exit_causes import cgroup_files, memories, number_after

_PAGE = mmap.PAGESIZE
_CACHED = ("inactive_file", "active_file")  # of files, which the system drops when somebody needs the memory


class Headroom:
    """Looks at the machine, at the cgroup of this process, and at its workers.

    Args:
        pids: Of the workers.
        consumers: Processes of this machine that share its memory, each with workers of its own.
    """

    def __init__(self, pids: Callable[[], list[int]], consumers: int = 1) -> None:
        self._pids, self._consumers = pids, consumers
        self._slots = self._largest = 0

    def used(self, slot: int, nbytes: int) -> None:
        """A batch lies in the slot of that number and size."""
        if slot >= self._slots or nbytes > self._largest:
            self._slots, self._largest = max(self._slots, slot + 1), max(self._largest, nbytes)

    def available(self) -> tuple[float, float]:
        """Bytes that can still be used, and the limit that they are part of: this consumer's share of both, by what the
        machine has, or the cgroup if that has less."""
        found: list[tuple[float, float]] = [(math.inf, 0.0)]
        for memory in memories():
            is_machine = memory.whose.endswith("machine's memory")
            found.append((memory.limit - memory.used + (0 if is_machine else _cached()), memory.limit))
        free, limit = min(found)
        return free / self._consumers, limit / self._consumers

    def of_a_worker(self) -> float:
        """Bytes that each worker has to itself: of those that there are, the most."""
        return float(max(map(_own_bytes, self._pids()), default=0))

    def of_slots(self) -> float:
        """Bytes of all slots that were used so far, at most."""
        return float(self._slots * self._largest)


def _cached() -> int:
    return sum(number_after(key, file) for file in cgroup_files("memory.stat") for key in _CACHED)


def _own_bytes(pid: int) -> int:
    """In its memory, and in nobody's shared memory or file."""
    with contextlib.suppress(OSError, ValueError):
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = file.read().split()
        return (int(resident) - int(shared)) * _PAGE
    return 0
