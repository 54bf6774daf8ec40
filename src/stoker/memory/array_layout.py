"""How arrays lie one behind the other in a piece of memory: a batch in its slot, a sample in a store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

ALIGN = 64  # bytes: where arrays begin, as consumers of DLPack want


def aligned(nbytes: int, to: int = ALIGN) -> int:
    """The next multiple of ``to``."""
    return -(-nbytes // to) * to


def lay_out(arrays: Iterable[tuple[np.dtype[Any], tuple[int, ...]] | None]) -> tuple[list[int], int]:
    """The offset of each array, given by type and shape, and where the last one ends. None takes no memory."""
    offsets, end = [], 0
    for array in arrays:
        if array is None:
            offsets.append(end)
            continue
        dtype, shape = array
        offset = aligned(end)
        offsets.append(offset)
        end = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return offsets, end
