"""What the operating system says about the processors: who had to wait for a core, and how many threads workers run.

Read from /proc when somebody asks for figures, never for each batch. Where there is no such file (another system, or
workers on another machine), nothing is known, and nothing is said.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import monotonic

from stoker.workers.options import usable_cores
from stoker.workers.run_queue import CoreTime, core_time_of

_BUSY_THREAD = 0.2  # of the time of a process's busiest thread: threads with less are not counted
_AGAIN_S = 0.1  # until another look is worth its files
_MANY_THREADS = 512  # of all workers together: more are not looked at, since each is a file to read


@dataclass(frozen=True)
class Processors:
    """Times are in seconds.

    Attributes:
        cores: That this process may use: its affinity and the limit of its cgroup.
        consumer_cpu: Processor time of the thread that takes batches, since its first one.
        consumer_delay: For so long it could have run and had no core. None: not known.
        workers_cpu: Processor time of workers, over all their threads, since they were started.
        workers_delay: They could have run for so long, and had no core, since then. None: not known.
        busy_threads: That a worker process computes with at the same time, on average. 0: not known.
        seconds: Since the consumer's first batch, until all this was seen.
    """

    cores: int = 0
    consumer_cpu: float = 0.0
    consumer_delay: float | None = None
    workers_cpu: float = 0.0
    workers_delay: float | None = None
    busy_threads: float = 0.0
    seconds: float = 0.0


class ProcessorWatch:
    """Looks at one consumer's thread and at its workers. ``last``: what was seen at the last look.

    Args:
        has_threads: Workers are threads of this process: all but the consumer's own are taken for them.
    """

    def __init__(self, *, has_threads: bool = False) -> None:
        self._has_threads, self._thread = has_threads, 0
        self._others_before: dict[str, CoreTime] = {}  # what other threads of this process had had by then
        self._began = 0.0
        self._before = CoreTime(0, 0)  # what the thread had had when it took its first batch
        self.last = Processors()
        self._looked = -inf

    def begin(self, thread: int) -> None:
        """``thread``: the native id of the consumer's thread."""
        self.last = Processors(usable_cores())
        self._thread, self._before = thread, core_time_of(f"/proc/self/task/{thread}") or CoreTime(0, 0)
        self._others_before = self._others() if self._has_threads else {}
        self._began = monotonic()

    def look(self, pids: Iterable[int]) -> None:
        """As it is now; of what has ended meanwhile, as it was at the last look. Who asks again soon sees the same."""
        now = monotonic()
        if now - self._looked < _AGAIN_S:
            return
        self._looked = now
        own = core_time_of(f"/proc/self/task/{self._thread}") if self._thread else None
        if own is not None:
            running, delayed = own.since(self._before)
            self.last = replace(
                self.last, consumer_cpu=running / 1e9, consumer_delay=delayed / 1e9, seconds=now - self._began
            )
        workers = [[*threads.values()] for threads in _threads_of(pids)]
        if self._has_threads and own is not None:
            before, none = self._others_before, CoreTime(0, 0)
            self._note_workers(_sum([[time.since(before.get(name, none)) for name, time in self._others().items()]]))
        elif workers:
            self._note_workers(_sum(workers))
            self.last = replace(self.last, busy_threads=sum(map(_busy, workers)) / len(workers))

    def _note_workers(self, time: CoreTime) -> None:
        self.last = replace(self.last, workers_cpu=time.running / 1e9, workers_delay=time.delayed / 1e9)

    def _others(self) -> dict[str, CoreTime]:
        """By the names of their threads: those that end take nothing from what the others have had."""
        [threads] = _threads_of([os.getpid()]) or [{}]
        return {name: time for name, time in threads.items() if name != str(self._thread)}


def _threads_of(pids: Iterable[int]) -> list[dict[str, CoreTime]]:
    """The threads of each process that is still there, by name."""
    found, seen = [], 0
    for pid in pids:
        folder = f"/proc/{pid}/task"
        with contextlib.suppress(OSError):
            names = os.listdir(folder)[: _MANY_THREADS - seen]
            seen += len(names)
            threads = {name: time for name in names if (time := core_time_of(f"{folder}/{name}"))}
            if threads:
                found.append(threads)
    return found


def _sum(processes: Iterable[Sequence[CoreTime]]) -> CoreTime:
    threads = [thread for threads in processes for thread in threads]
    return CoreTime(sum(thread.running for thread in threads), sum(thread.delayed for thread in threads))


def _busy(threads: Sequence[CoreTime]) -> int:
    most = max(thread.running for thread in threads)
    return sum(thread.running >= _BUSY_THREAD * most for thread in threads)
