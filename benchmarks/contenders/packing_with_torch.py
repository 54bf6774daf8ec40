"""A plain `IterableDataset` for torch's DataLoader, as people write it: each worker fills one row after the other with
its part of the samples, in their order, until the next one does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset, get_worker_info

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job
from benchmarks.contenders.packed_stream import ROW, TOKENS, PackedStream
from benchmarks.datasets import Array, Dataset

SEGMENTS = "segment_ids"


class Packed(IterableDataset):  # type: ignore[type-arg]
    """Rows of the samples, in another order in each epoch."""

    def __init__(self, dataset: Dataset, shuffle: bool) -> None:
        self.dataset, self.shuffle, self.epoch = dataset, shuffle, 0

    def __iter__(self) -> Iterator[dict[str, Array]]:
        worker: Any = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        order = np.arange(len(self.dataset))
        if self.shuffle:
            np.random.default_rng(self.epoch).shuffle(order)
            self.epoch += 1
        held: list[Array] = []
        used = 0
        for index in order[first::step].tolist():
            tokens = self.dataset[index]
            if used + len(tokens) > ROW:
                yield row_of(held)
                held, used = [], 0
            held.append(tokens)
            used += len(tokens)
        if held:
            yield row_of(held)


def row_of(held: list[Array]) -> dict[str, Array]:
    """One row, written piece by piece."""
    row = {name: np.zeros(ROW, np.int32) for name in (TOKENS, SEGMENTS, "position_ids")}
    begin = 0
    for number, tokens in enumerate(held, start=1):
        end = begin + len(tokens)
        row[TOKENS][begin:end] = tokens
        row[SEGMENTS][begin:end] = number
        row["position_ids"][begin:end] = np.arange(len(tokens))
        begin = end
    return row


def open_loader(job: Job) -> PackedStream:
    stream = with_torch.open_loader(job, Packed(job.dataset, job.shuffle), shuffle=False)
    return PackedStream(stream, SEGMENTS)
