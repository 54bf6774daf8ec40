"""Packed rows: what a worker makes of a window of samples, and how batches are cut of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stoker.collation import Pack
from stoker.sources.group_table import Batches


class PackedRows(NamedTuple):
    """All rows of a window, in a few large arrays.

    Attributes:
        table: The columns.
        sizes: Of the batches; the rows behind them are loose, and wait for those of the next window.
        is_single: Each batch is a row by itself, and no batch of one.
        unread: Parts of files that were left out.
    """

    table: dict[str, Any]
    sizes: Any
    is_single: bool
    unread: list[Any]

    @property
    def form(self) -> Mapping[str, str]:
        """None that others must have: its columns are always the same."""
        return {}

    def batches(self) -> Batches:
        """Each is cut when it is asked for."""
        columns, size = list(self.table.items()), int(self.sizes[0]) if len(self.sizes) else 0
        if self.is_single:
            return Batches(lambda nth: {key: column[nth] for key, column in columns}, len(self.sizes))

        def make(nth: int) -> dict[str, Any]:
            rows = slice(nth * size, (nth + 1) * size)
            return {key: column[rows] for key, column in columns}

        return Batches(make, len(self.sizes))

    def record_batches(self, to_arrow: Callable[[Any], Any]) -> Batches:
        """The same for Arrow."""
        batches = self.batches()
        return Batches(lambda nth: to_arrow(batches.make(nth)), len(batches))

    def loose(self) -> tuple[list[Any], int]:
        """The rows that are in no batch; none of them is before the first."""
        first, count = int(self.sizes.sum()), len(self.table["segment_ids"])
        return [{key: column[row] for key, column in self.table.items()} for row in range(first, count)], 0

    def in_order_of(self, form: Mapping[str, str]) -> PackedRows:
        """Itself: the order of its columns is always the same."""
        return self


@dataclass(frozen=True)
class PackSamples:
    """What a worker does with the samples of a window. ``batch_size``: rows in a batch; None: single rows."""

    pack: Pack
    batch_size: int | None

    def __call__(self, samples: Sequence[Any], indices: Sequence[int]) -> PackedRows:
        table, count = self.pack.columns(samples, indices)
        size = self.batch_size or 1
        return PackedRows(dict(table), np.full(count // size, size), self.batch_size is None, [])
