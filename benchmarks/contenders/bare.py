"""Bare processes that repeat a step and hand over nothing, told over pipes when to run."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

from benchmarks.contenders.contender import LEAD_IN_S, Count

Step = Callable[[], int]  # does some work, and says how many samples came of it


@dataclass(frozen=True)
class _Part:
    """What one process did in a round."""

    samples: int
    seconds: float
    cpu_seconds: float


def _work(make_step: Callable[[int], Step], number: int, lead_in: int, barrier: Any, orders: Connection) -> None:
    step = make_step(number)

    def loop(seconds: float, least: int) -> tuple[int, float]:
        samples, count, begin = 0, 0, perf_counter()
        end = begin + seconds
        while True:
            samples += step()
            count += 1
            if (now := perf_counter()) >= end and count >= least:
                return samples, now - begin

    while (seconds := orders.recv()) is not None:
        barrier.wait()
        loop(LEAD_IN_S, lead_in)
        barrier.wait()
        before = process_time()
        samples, elapsed = loop(seconds, 1)
        orders.send(_Part(samples, elapsed, process_time() - before))


class Bare:
    """Some processes.

    Args:
        make_step: Gets the number of a process, in that process, and makes what it is to repeat.
        processes: How many.
        batch_size: Samples that count as a batch.
        lead_in: Steps before the clock runs, at least.
    """

    def __init__(self, make_step: Callable[[int], Step], processes: int, batch_size: int, lead_in: int = 1) -> None:
        context = multiprocessing.get_context("fork")
        barrier = context.Barrier(processes)
        self._batch_size = batch_size
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for number in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(make_step, number, lead_in, barrier, there), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def warm_up(self, most_seconds: float) -> None:
        self.run(min(0.5, most_seconds))

    def run(self, seconds: float) -> Count:
        for pipe in self._pipes:
            pipe.send(seconds)
        parts: list[_Part] = [pipe.recv() for pipe in self._pipes]
        samples = sum(part.samples for part in parts)
        # Each at its own speed: who is done first, the others having a long step to end, has not been slower.
        rate = sum(part.samples / part.seconds for part in parts)
        return Count(samples / self._batch_size, samples / rate, sum(part.cpu_seconds for part in parts))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()
