"""Packed rows of a dataset with an index: workers pack windows of samples, and batches are cut of their rows.

    positions of the epoch ── windows ── a worker fetches and packs ──> batches of rows ─────────────> you
                                                                   └──> loose rows ── joined ──────┘

A window's last rows, too few for a batch, wait for the first ones of the next window.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stoker.agenda.agenda import ROWS_UNCOUNTED
from stoker.agenda.packed.progress import PackedProgress
from stoker.agenda.packed.units import PackedUnits
from stoker.agenda.packed.windows import Windows
from stoker.collation import Pack
from stoker.plan import Plan
from stoker.sources import IndexedSource


class PackedAgenda:
    """The batches of packed rows of a dataset with an index, epoch after epoch.

    Args:
        batches: Batch size (in rows), shuffle, seed, ``drop_last`` and shard. Its length plays no part where workers
            make the dataset.
        pack: How samples are packed.
        source: The dataset, or what makes it.
    """

    def __init__(self, batches: Plan, pack: Pack, source: IndexedSource) -> None:
        self.is_counted = not source.is_factory
        self._windows = windows = Windows(batches, pack)
        self.units, self.progress = PackedUnits(windows), PackedProgress(windows)
        self._source = source

    @property
    def plan(self) -> Plan:
        """What workers work by: they do not have an order that is asked for."""
        plan = self._windows.plan
        return plan if self.units.order is None else dataclasses.replace(plan, order=None)

    @property
    def shard(self) -> tuple[int, int]:
        return self.plan.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        progress, before = self.progress, self._windows.batches
        state = progress.state(progress.cursor)
        self._windows.set_batches(dataclasses.replace(before, shard=shard))
        try:
            progress.cursor = progress.from_state(state)
        except BaseException:
            self._windows.set_batches(before)
            raise

    def set_length(self, length: int) -> None:
        self._windows.set_batches(self._windows.batches.of_length(length))
        self.is_counted = True

    def __len__(self) -> int:
        raise TypeError(ROWS_UNCOUNTED)

    def seek(self) -> None:
        self.units.sought = self.progress.cursor

    def recount(self) -> bool:
        if self._source.is_factory or self.progress.cursor.is_within:
            return False
        length = len(self._source.dataset)
        if length == self.plan.length:
            return False
        self.set_length(length)
        return True

    def look(self) -> Callable[[], None] | None:
        order, epoch = self.units.order, self.progress.epoch
        if order is None:
            return None
        order.given(epoch)  # now: while the engine runs, no code of the user's is to be called
        return None if self.units.sought.epoch == epoch else lambda: None  # there is nothing yet of this epoch

    def close(self) -> None:
        pass
