"""Large arrays of a batch that are not copied into its slot, for a transport that copies what it is given anyway."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker.collation.columns import Array, Column

_LARGE = 2**17  # bytes of an array: to send a smaller one by itself costs Ray more than copying it


class LooseArrays:
    """Remembers arrays that are still where the dataset has them, and their places in the slot.

    Only for a batch that leaves before the next one is fetched: a dataset may use its arrays again.
    """

    def __init__(self) -> None:
        self.is_allowed = False
        self._taken: list[tuple[int, Array]] = []

    def clear(self) -> None:
        self._taken.clear()

    def take(self, column: Column, offset: int) -> bool:
        """Takes the arrays of a column, which belongs at ``offset``. False: they are to be copied into the slot."""
        if not self.is_allowed or column.dtype.itemsize * int(np.prod(column.shape)) < _LARGE:
            return False
        arrays = column.parts()
        if not arrays or not all(array.nbytes >= _LARGE and array.flags.c_contiguous for array in arrays):
            return False
        for array in arrays:
            self._taken.append((offset, _as_bytes(array)))
            offset += array.nbytes
        return True

    def parts(self, slot: memoryview[Any], end: int) -> list[Array]:
        """The bytes of the slot up to ``end``, in parts that come one behind the other. What was taken is let go of."""
        parts, at = [], 0
        for offset, array in self._taken:
            parts += [np.frombuffer(slot[at:offset], np.uint8), array] if offset > at else [array]
            at = offset + array.nbytes
        self.clear()
        return [*parts, np.frombuffer(slot[at:end], np.uint8)]


def _as_bytes(array: Array) -> Array:
    return array.view(np.ndarray).reshape(-1).view(np.uint8)
