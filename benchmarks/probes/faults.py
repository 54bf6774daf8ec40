"""The consumer's page faults and new mappings over 1000 warm batches, each of which it reads."""

from __future__ import annotations

import resource
from typing import Any

from benchmarks import memory
from benchmarks.datasets import Pool

_BATCH, _BATCHES = 64, 1000


def measure(library: str) -> dict[str, float]:
    dataset = Pool(_BATCH * _BATCHES, (4096,), "float32", pool=64)
    loader = _loader(library, dataset)
    for batch in loader:  # the warm epoch
        batch.sum()
    batches = iter(loader)
    for _ in range(10):
        next(batches).sum()
    maps, faults = memory.mappings(), _faults()
    for batch in batches:
        batch.sum()
    count = _BATCHES - 10
    faults_each = (_faults() - faults) / count
    return {"faults": faults_each, "mappings": (memory.mappings() - maps) / count}


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _loader(library: str, dataset: Any) -> Any:
    if library == "stoker":
        import stoker

        return stoker.Loader(dataset, _BATCH, workers=stoker.Processes(2))
    from torch.utils.data import DataLoader

    return DataLoader(dataset, _BATCH, num_workers=2, persistent_workers=True)
