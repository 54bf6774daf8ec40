"""The limit: the same work in bare processes, with no loader.

Each of two processes goes over its half of the batches: fetch the samples, stack them into memory that is
already warm, hand over nothing. A loader that does this work in two processes can at best be as fast.

By default that memory is one batch, written again and again, so it stays in the processor's caches where it fits; a
loader has several in flight. `buffers` says how many a process writes in turn.
"""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np

from benchmarks.contenders import bare_forms
from benchmarks.contenders.bare import Bare, Step
from benchmarks.contenders.contender import LEAD_IN_BATCHES, Job
from benchmarks.datasets import fetch


def open_loader(job: Job, buffers: int = 1) -> Bare:
    workload = job.workload
    if not isinstance(job.dataset[0], np.ndarray):
        return bare_forms.open_loader(job)

    def make_step(half: int) -> Step:
        # Ready before the clock runs: making up an order is a loader's work, not the limit's.
        mine = list(islice(job.index_batches(), half, workload.batches, workload.workers))
        outs = [np.stack(fetch(job.dataset, mine[0])) for _ in range(buffers)]
        turns = cycle([(indices, outs[position % buffers]) for position, indices in enumerate(mine)])

        def step() -> int:
            indices, out = next(turns)
            np.stack(fetch(job.dataset, indices), out=out)
            return workload.batch_size

        return step

    return Bare(make_step, workload.workers, workload.batch_size, LEAD_IN_BATCHES)
