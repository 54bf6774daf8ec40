"""Epoch by epoch: how long each takes, with a cache in a fresh folder or without one; and the first after a restart.

The folder is where temporary files go, which `TMPDIR` says: it is to be on a disk.

Some virtual machines give free memory back to their host, a few seconds after it became free. To get it again for the
pages of a new file was measured to cost ten times as much as writing them, more than decoding. That is no matter of the
cache's; so it is done before, by writing a file of that size and removing it, unless what it costs is the question.
"""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.datasets import Dataset
from benchmarks.workloads import KEPT, kept, photos

_PIECE = b"\1" * 2**22


def measure(
    cached: bool, epochs: int, refresh_every: int | None = None, has_memory: bool = True, of_photos: bool = False
) -> dict[str, float]:
    """Seconds of `epoch 0`, `epoch 1` and so on; of a cache that is not refreshed, also `restarted`.

    From the end of the epoch before to the end of this one; the first of a loader from its first batch on, so that
    what is compared is the work and not the start of the workers.
    """
    import stoker

    dataset = photos() if of_photos else kept()
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
        if has_memory:
            _get_memory(Path(folder) / "memory")
        cache = stoker.Cache(Path(folder) / "cache", refresh_every=refresh_every) if cached else None
        found = {f"epoch {number}": seconds for number, seconds in enumerate(_epochs(dataset, cache, epochs))}
        if cache is not None and refresh_every is None and epochs > 1:
            (found["restarted"],) = _epochs(dataset, cache, 1)
    return found


def _get_memory(file: Path) -> None:
    left = KEPT["cache"].batches * KEPT["cache"].batch_bytes
    with file.open("wb", buffering=0) as out:
        while left > 0:
            left -= out.write(_PIECE)
    os.unlink(file)


def _epochs(dataset: Dataset, cache: Any, count: int) -> list[float]:
    import stoker

    workers = stoker.Processes(KEPT["cache"].workers)
    ends = []
    with stoker.Loader(dataset, KEPT["cache"].batch_size, shuffle=True, workers=workers, cache=cache) as loader:
        for _ in range(count):
            for _batch in loader:
                if not ends:
                    ends.append(perf_counter())
            ends.append(perf_counter())
    return [end - begin for begin, end in pairwise(ends)]
