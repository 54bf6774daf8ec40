"""The limit for samples of any form: bare processes that fetch, take the samples apart, and write each column into
memory that is already warm. Texts stay lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from benchmarks.contenders.bare import Bare, Step
from benchmarks.contenders.contender import LEAD_IN_BATCHES, Job

Write = Callable[[Sequence[Any]], object]


def open_loader(job: Job) -> Bare:
    workload, dataset = job.workload, job.dataset
    take_apart = dataset.columns

    def make_step(half: int) -> Step:
        mine = list(islice(job.index_batches(), half, workload.batches, workload.workers))
        writers = [_writer(column) for column in take_apart([dataset[index] for index in mine[0]])]
        turns = cycle(mine)

        def step() -> int:
            columns = take_apart([dataset[index] for index in next(turns)])
            for write, column in zip(writers, columns, strict=True):
                write(column)
            return workload.batch_size

        return step

    return Bare(make_step, workload.workers, workload.batch_size, LEAD_IN_BATCHES)


def _writer(column: Sequence[Any]) -> Write:
    first = column[0]
    if isinstance(first, str | bytes | dict):
        return list
    if isinstance(first, np.ndarray) and first.ndim:
        arrays = np.stack(column)
        return lambda values: np.stack(values, out=arrays)
    if isinstance(first, np.ndarray | int | float | np.generic):
        numbers = np.array(column)

        def write(values: Sequence[Any]) -> None:
            numbers[:] = values

        return write
    import torch

    torch.set_num_threads(1)
    tensors = torch.stack(tuple(column))
    return lambda values: torch.stack(tuple(values), out=tensors)
