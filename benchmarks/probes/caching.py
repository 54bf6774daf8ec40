"""Epoch by epoch: how long each takes, with a cache in a fresh folder or without one; and the first after a restart.

The folder is where temporary files go, which `TMPDIR` says: it is to be on a disk.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from time import perf_counter
from typing import Any

from benchmarks.workloads import KEPT, kept


def measure(cached: bool, epochs: int, refresh_every: int | None = None) -> dict[str, float]:
    """Seconds of `epoch 0`, `epoch 1` and so on; with a cache that is never refreshed, also of `restarted`.

    From the end of the epoch before to the end of this one; the first of a loader from its first batch on, so that
    what is compared is the work and not the start of the workers.
    """
    import stoker

    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        cache = stoker.Cache(folder, refresh_every=refresh_every) if cached else None
        found = {f"epoch {number}": seconds for number, seconds in enumerate(_epochs(cache, epochs))}
        if cache is not None and refresh_every is None:
            (found["restarted"],) = _epochs(cache, 1)
    return found


def _epochs(cache: Any, count: int) -> list[float]:
    import stoker

    workload = KEPT["cache"]
    dataset = kept()
    workers = stoker.Processes(workload.workers)
    ends = []
    with stoker.Loader(dataset, workload.batch_size, shuffle=True, workers=workers, cache=cache) as loader:
        for _ in range(count):
            for _batch in loader:
                if not ends:
                    ends.append(perf_counter())
            ends.append(perf_counter())
    return [end - begin for begin, end in pairwise(ends)]
