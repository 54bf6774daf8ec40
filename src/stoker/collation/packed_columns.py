"""The columns of packed rows. Each writes all rows of a window at once, straight into the memory it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker.collation.columns import Array
from stoker.plan.packing import Layout


class PackedTokens:
    """The tokens of all rows: pieces of ``arrays``, with ``filler`` at the end of each row."""

    __slots__ = ("_arrays", "_filler", "_layout", "dtype", "shape", "tensor")

    def __init__(self, arrays: list[Array], layout: Layout, dtype: np.dtype[Any], filler: Any, tensor: str) -> None:
        self._arrays, self._layout, self._filler = arrays, layout, filler
        self.shape: tuple[int, ...] = layout.count, layout.length
        self.dtype, self.tensor = dtype, tensor

    def write(self, out: Array) -> None:
        layout, arrays = self._layout, self._arrays
        if not layout.count:
            return
        pieces = list(map(arrays.__getitem__, layout.sequences.tolist()))
        ends = layout.starts + layout.sizes
        for nth in np.flatnonzero(layout.sizes != np.fromiter(map(len, pieces), np.int64, len(pieces))).tolist():
            pieces[nth] = pieces[nth][layout.starts[nth] : ends[nth]]
        padding = np.full(layout.padding.max(), self._filler, self.dtype)
        # One call of numpy for all rows: to copy piece by piece takes three times as long.
        np.concatenate(_with_padding(pieces, layout, padding), out=out.reshape(-1), casting="same_kind")

    def parts(self) -> list[Array]:
        return []


class SegmentIds:
    """1 for the tokens of the first piece of a row, 2 for the second, and so on; 0 for padding."""

    __slots__ = ("_layout", "dtype", "shape", "tensor")

    def __init__(self, layout: Layout, tensor: str) -> None:
        self._layout = layout
        self.shape: tuple[int, ...] = layout.count, layout.length
        self.dtype, self.tensor = np.dtype(np.int32), tensor

    def write(self, out: Array) -> None:
        layout = self._layout
        numbers = np.arange(1, len(layout.rows) + 1) - layout.firsts[layout.rows]
        ends = layout.firsts[1:]
        values, sizes = np.insert(numbers, ends, 0), np.insert(layout.sizes, ends, layout.padding)
        out.reshape(-1)[:] = np.repeat(values.astype(self.dtype), sizes)

    def parts(self) -> list[Array]:
        return []


class PositionIds:
    """The place of each token in its piece, from 0 on; 0 for padding."""

    __slots__ = ("_layout", "dtype", "shape", "tensor")

    def __init__(self, layout: Layout, tensor: str) -> None:
        self._layout = layout
        self.shape: tuple[int, ...] = layout.count, layout.length
        self.dtype, self.tensor = np.dtype(np.int32), tensor

    def write(self, out: Array) -> None:
        layout = self._layout
        ends = layout.firsts[1:]
        before = np.cumsum(layout.sizes) - layout.sizes  # in all rows, without padding
        begins = before - before[layout.firsts[layout.rows]]
        places = np.arange(layout.length, dtype=self.dtype)
        padded = layout.length - layout.padding
        values, sizes = np.insert(begins, ends, padded), np.insert(layout.sizes, ends, layout.padding)
        np.subtract(places, np.repeat(values.astype(self.dtype), sizes).reshape(self.shape), out=out)
        for row in np.flatnonzero(layout.padding).tolist():
            out[row, padded[row] :] = 0

    def parts(self) -> list[Array]:
        return []


def _with_padding(pieces: list[Array], layout: Layout, padding: Array) -> list[Array]:
    """The pieces of all rows, with padding behind those of each row that has some."""
    found: list[Array] = []
    begin = 0
    for end, missing in zip(layout.firsts[1:].tolist(), layout.padding.tolist(), strict=True):
        found += pieces[begin:end]
        if missing:
            found.append(padding[:missing])
        begin = end
    return found
