"""Packed rows of a dataset with an index: workers pack windows of samples, and batches are cut of their rows.

    positions of the epoch ── windows ── a worker fetches and packs ──> batches of rows ─────────────> you
                                                                   └──> loose rows ── joined ──────┘

A window's last rows, too few for a batch, wait for the first ones of the next window.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from stoker.agenda.agenda import ENDLESS, ROWS_UNCOUNTED
from stoker.agenda.grouped_progress import GroupedProgress
from stoker.agenda.packed.groups import PackedGroups
from stoker.agenda.packed.units import PackedUnits
from stoker.agenda.packed.windows import Windows
from stoker.collation import Pack
from stoker.plan import ChunkCursor, Mixture, Plan
from stoker.plan.mixture import Weights
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
        self.units, self.progress = PackedUnits(windows), GroupedProgress(PackedGroups(windows))
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
        self.progress.go_on_as(shard, self._windows.batches, self._windows.set_batches)
        self.units.has_told = self._windows.plan.order

    def set_length(self, length: int) -> None:
        self._windows.set_batches(self._windows.batches.of_length(length))
        self.is_counted = True

    def __len__(self) -> int:
        order = self.plan.order
        raise TypeError(ENDLESS if isinstance(order, Mixture) and order.is_endless else ROWS_UNCOUNTED)

    def set_weights(self, weights: Weights, cursor: ChunkCursor, after: int | None, *, ahead: bool) -> tuple[int, bool]:
        """See ``MixedAgenda``: a unit is a window, and ``after`` is None.

        Raises:
            ValueError: There are several shards, and this one is in the middle of an epoch.
        """
        plan, order, here = self.plan, self.plan.order, (cursor.epoch, cursor.begun)
        assert isinstance(order, Mixture)
        issued = max(here, self.units.issued) if ahead else here
        epoch, place = issued
        if plan.shard[1] > 1:  # which windows were handed out differs, but where an epoch begins does not
            if cursor.is_within:
                raise ValueError(
                    f"set_weights in the middle of an epoch, on {plan.shard[1]} shards with pack=: each shard is at "
                    f"another sample. Call it in each process between the same two loops"
                )
            epoch, place = here
        before = sum(self._windows.count(each) for each in range(here[0], epoch)) + place - here[1]
        changed = order.with_weights(weights, order.stream_position(epoch, place * plan.stride))
        self._windows.set_batches(dataclasses.replace(self._windows.batches, order=changed))
        return before, (epoch, place) < issued

    def seek(self) -> None:
        self.units.sought = cursor = self.progress.cursor
        self.units.issued = cursor.epoch, cursor.begun

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
