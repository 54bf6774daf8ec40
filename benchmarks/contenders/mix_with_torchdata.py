"""torchdata's nodes: `MultiNodeWeightedSampler` of the indices of three sources, `Batcher`, then a `ParallelMapper`
with processes that fetches and collates. To sample finished samples instead would send each of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import RandomSampler, SequentialSampler, default_collate
from torchdata.nodes import (
    Batcher,
    Loader,
    Mapper,
    MultiNodeWeightedSampler,
    ParallelMapper,
    Prefetcher,
    SamplerWrapper,
)

from benchmarks.contenders.contender import PREFETCH, Job, Stream
from benchmarks.contenders.with_mix import WEIGHTS


class _Fetch:
    """Samples of a batch, by source and index."""

    def __init__(self, sources: dict[str, Any]) -> None:
        self._sources = sources

    def __call__(self, batch: list[tuple[str, int]]) -> Any:
        return default_collate([self._sources[name][index] for name, index in batch])


class _Named:
    """An index, with its source."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, index: int) -> tuple[str, int]:
        return self._name, index


def open_loader(job: Job) -> Stream:
    workload = job.workload
    kind = RandomSampler if job.shuffle else SequentialSampler
    weights = {f"source {number}": weight for number, weight in enumerate(WEIGHTS)}
    nodes: dict[str, Any] = {name: Mapper(SamplerWrapper(kind(job.dataset)), _Named(name)) for name in weights}
    mixed = MultiNodeWeightedSampler(nodes, weights, stop_criteria="CYCLE_FOREVER", seed=0)
    fetch = _Fetch(dict.fromkeys(weights, job.dataset))
    batches: Any = Batcher(mixed, workload.batch_size)
    batches = ParallelMapper(batches, fetch, num_workers=workload.workers, method="process")
    loader: Any = Loader(Prefetcher(batches, PREFETCH))

    def epochs() -> Iterator[Any]:
        while True:
            yield from loader

    return Stream(epochs(), workload.batches, lambda: None)
