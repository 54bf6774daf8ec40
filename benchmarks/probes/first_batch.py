"""From the call that makes a loader to its first batch, the libraries being imported already."""

from __future__ import annotations

from time import perf_counter
from typing import Any

_BATCH = 64


def measure(library: str, start: str, workers: int = 2, dataset: str = "plain") -> dict[str, float]:
    """Seconds to the first batch of the process's first loader, and of its second while the first is open."""
    make = _stoker if library == "stoker" else _torch
    make(None, start, workers)  # imports, but makes nothing
    samples = _dataset(dataset)
    begin = perf_counter()
    first = make(samples, start, workers)
    batches = iter(first)
    next(batches)
    seconds = perf_counter() - begin
    for _ in batches:
        pass
    begin = perf_counter()
    second = make(samples, start, workers)
    next(iter(second))
    return {"first": seconds, "second": perf_counter() - begin}


def _dataset(name: str) -> Any:
    if name == "torch":
        from benchmarks.probes.torch_dataset import WithTorch

        return WithTorch()
    from benchmarks.probes.plain_dataset import Plain

    return Plain()


def _stoker(samples: Any, start: Any, workers: int) -> Any:
    import stoker

    return samples and stoker.Loader(samples, _BATCH, workers=stoker.Processes(workers, start=start))


def _torch(samples: Any, start: str, workers: int) -> Any:
    from torch.utils.data import DataLoader

    return samples and DataLoader(samples, _BATCH, num_workers=workers, multiprocessing_context=start)
