"""An in-memory dataset of 1 GB on four worker processes: memory of all processes once everything was read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import memory

_ROW = 2**16
_ROWS = 10**9 // _ROW


class InMemory:
    def __init__(self) -> None:
        self.rows = np.full((_ROWS, _ROW), 7, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        row: NDArray[np.uint8] = self.rows[index]
        return row


def measure(kept: bool) -> dict[str, float]:
    """PSS of the tree after an epoch.

    Args:
        kept: Whether the caller keeps its own reference to the dataset while it loads.
    """
    import stoker

    mine: Any = InMemory() if kept else None
    workers = stoker.Processes(4)
    # Batches of half a megabyte, so that the slots weigh nothing beside the dataset.
    loader: Any = stoker.Loader(mine, 8, workers=workers) if kept else stoker.Loader(InMemory(), 8, workers=workers)
    total = sum(int(batch[:, 0].sum()) for batch in loader)
    assert total == 7 * _ROWS, "each row once"
    pss = memory.pss_bytes(os.getpid())
    loader.close()
    del mine
    return {"pss_bytes": float(pss)}
