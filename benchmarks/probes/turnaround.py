"""Epoch turn-around: from the last batch of one epoch to the first of the next, workers being kept or made again."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.datasets import Pool

_BATCH, _BATCHES = 256, 16
_EPOCHS, _EPOCHS_WITH_NEW_WORKERS = 100, 30  # the latter take torch a hundred times as long


def measure(library: str, persistent: bool = True) -> dict[str, float]:
    loader = _loader(library, Pool(_BATCH * _BATCHES, (1024,), "uint8", pool=1024), persistent)
    gaps: list[float] = []
    last: float | None = None
    for _ in range(_EPOCHS if persistent else _EPOCHS_WITH_NEW_WORKERS):
        fresh = True
        for _batch in loader:
            now = perf_counter()
            if fresh and last is not None:
                gaps.append(now - last)
            fresh, last = False, now
    return {"seconds": median(gaps[1:])}


def _loader(library: str, dataset: Any, persistent: bool) -> Any:
    if library == "stoker":
        import stoker

        return stoker.Loader(dataset, _BATCH, workers=stoker.Processes(2))
    if library == "drop_in":
        from stoker.torch import DataLoader
    else:
        from torch.utils.data import DataLoader
    return DataLoader(dataset, _BATCH, num_workers=2, persistent_workers=persistent)
