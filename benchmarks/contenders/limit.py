"""The limit: the same work in bare processes, with no loader.

Each of two processes goes over its half of the batches: fetch the samples, stack them into memory that is
already warm, hand over nothing. A loader that does this work in two processes can at best be as fast.

By default that memory is one batch, written again and again, so it stays in the processor's caches where it fits; a
loader has several in flight. `buffers` says how many a process writes in turn.
"""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.contenders.contender import LEAD_IN_BATCHES, LEAD_IN_S, Count, Job
from benchmarks.datasets import fetch


@dataclass(frozen=True)
class _Half:
    """What one process did in a round, on the clock that all processes share."""

    batches: int
    begin: float
    end: float
    cpu_seconds: float


def _work(job: Job, half: int, buffers: int, barrier: Any, orders: Connection) -> None:
    size = job.workload.batch_size
    # Ready before the clock runs: making up an order is a loader's work, not the limit's.
    mine = list(islice(job.index_batches(), half, job.workload.batches, job.workload.workers))
    outs = [np.stack(fetch(job.dataset, mine[0][:size])) for _ in range(buffers)]
    position = 0

    def loop(seconds: float, least: int) -> tuple[int, float, float]:
        nonlocal position
        count, begin = 0, perf_counter()
        end = begin + seconds
        while True:
            np.stack(fetch(job.dataset, mine[position]), out=outs[position % buffers])
            position = (position + 1) % len(mine)
            count += 1
            if (now := perf_counter()) >= end and count >= least:
                return count, begin, now

    while (seconds := orders.recv()) is not None:
        barrier.wait()
        loop(LEAD_IN_S, LEAD_IN_BATCHES)
        barrier.wait()
        before = process_time()
        count, begin, end = loop(seconds, 1)
        orders.send(_Half(count, begin, end, process_time() - before))


class Bare:
    """The bare processes, told over pipes when to run."""

    def __init__(self, job: Job, buffers: int) -> None:
        context = multiprocessing.get_context("fork")
        workers = job.workload.workers
        barrier = context.Barrier(workers)
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for half in range(workers):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(job, half, buffers, barrier, there), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def warm_up(self, most_seconds: float) -> None:
        self.run(min(0.5, most_seconds))

    def run(self, seconds: float) -> Count:
        for pipe in self._pipes:
            pipe.send(seconds)
        halves: list[_Half] = [pipe.recv() for pipe in self._pipes]
        elapsed = max(half.end for half in halves) - min(half.begin for half in halves)
        return Count(sum(half.batches for half in halves), elapsed, sum(half.cpu_seconds for half in halves))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def open_loader(job: Job, buffers: int = 1) -> Bare:
    return Bare(job, buffers)
