"""The consumer's page faults and new mappings a batch, over 1000 warm batches, each of which it reads."""

from __future__ import annotations

import resource
from typing import Any

from benchmarks import memory
from benchmarks.datasets import Pool

_BATCH, _BATCHES = 64, 1000


def measure(library: str) -> dict[str, float]:
    dataset = Pool(_BATCH * _BATCHES, (4096,), "float32", pool=64)
    loader = _loader(library, dataset)
    for _ in range(2):  # the second settles what the first one grew
        for batch in loader:
            batch.sum()
    del batch  # else it holds a slot, and the loader makes one more
    faults = _faults(loader)
    return {"faults": faults / _BATCHES, "mappings": _new_mappings(loader) / _BATCHES}


def _faults(loader: Any) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for batch in loader:
        batch.sum()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _new_mappings(loader: Any) -> int:
    """Looks while each batch is held: a mapping that is made and dropped with its batch counts too."""
    before = memory.file_mappings()
    seen = set(before)
    for batch in loader:
        batch.sum()
        seen |= memory.file_mappings()
    return len(seen - before)


def _loader(library: str, dataset: Any) -> Any:
    if library == "stoker":
        import stoker

        return stoker.Loader(dataset, _BATCH, workers=stoker.Processes(2))
    from torch.utils.data import DataLoader

    return DataLoader(dataset, _BATCH, num_workers=2, persistent_workers=True)
