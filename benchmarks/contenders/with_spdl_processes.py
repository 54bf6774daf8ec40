"""SPDL: `iterate_in_subprocess` with its shared-memory arena, a subprocess a worker, and torch's `default_collate`.

Each subprocess makes every other batch, and the consumer takes from them in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from spdl.pipeline import SharedMemoryRingBuffer, iterate_in_subprocess

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.contenders.with_spdl import loading

_ROOM = 4 * 2**20  # bytes beside the batches that are ready, so that a worker does not wait for the consumer's copy


def _use_one_thread() -> None:
    """As torch's own workers do: threads of a forked torch may hang."""
    import torch

    torch.set_num_threads(1)


def _part(job: Job, number: int) -> Iterator[Any]:
    load = loading(job)
    yield from map(load, islice(job.index_batches(), number, None, job.workload.workers))


def open_loader(job: Job) -> Stream:
    workload = job.workload
    room = (PREFETCH + 2) * workload.batch_bytes + _ROOM
    parts = [
        iterate_in_subprocess(
            partial(_part, job, number),
            buffer_size=PREFETCH,
            initializer=_use_one_thread,
            arena=SharedMemoryRingBuffer(room),
            daemon=True,
        )
        for number in range(workload.workers)
    ]

    def batches() -> Iterator[Any]:
        turns = [iter(part) for part in parts]
        while True:
            for turn in turns:
                yield next(turn)

    return Stream(batches(), workload.batches, parts.clear)
