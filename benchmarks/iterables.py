"""An iterable dataset of what is kept in memory. A file of its own, since whoever imports it imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info


class Kept(IterableDataset):  # type: ignore[type-arg]
    """`length` samples out of a few in memory, each worker giving its part of them."""

    def __init__(self, samples: Sequence[Any], length: int) -> None:
        self.samples, self.length = samples, length

    def __iter__(self) -> Iterator[Any]:
        worker: Any = get_worker_info()
        for index in range(worker.id, self.length, worker.num_workers):
            yield self.samples[index % len(self.samples)]
