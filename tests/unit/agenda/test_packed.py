"""Windows of an epoch, also where an order of one's own says how many positions it has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from stoker.agenda.packed.units import PackedUnits
from stoker.agenda.packed.windows import Windows
from stoker.collation import Pack
from stoker.plan import ChunkCursor, Plan, Sequential, again


@dataclass(frozen=True)
class Growing:
    """Epoch e has e + 1 times the dataset."""

    def positions(self, length, seed, epoch):
        return length * (epoch + 1)

    def of_epoch(self, length, shuffle, seed, epoch):
        return Sequential(length * (epoch + 1))

    def fingerprint(self, epoch):
        return "growing"


def offered(units: PackedUnits, count: int) -> list[tuple[int, int, list[int]]]:
    """Epoch, place and samples of the first so many units."""
    runs = islice(units.runs(lambda: 1), count)
    return [(run.epoch, units.batch(run.epoch, run.position).position, list(units.indices(run))) for run in runs]


def test_windows_are_offered_epoch_after_epoch():
    units = PackedUnits(Windows(Plan(10, 2), Pack(8, window=4)))
    assert offered(units, 4) == [(0, 0, [0, 1, 2, 3]), (0, 1, [4, 5, 6, 7]), (0, 2, [8, 9]), (1, 0, [0, 1, 2, 3])]


def test_those_with_rows_that_wait_are_offered_first_and_once_more():
    units = PackedUnits(Windows(Plan(10, 2), Pack(8, window=4)))
    units.sought = ChunkCursor(epoch=5, place=1, taken=(2,), waiting=((0, 0), (2, 0)))
    expected = [(again(5), 0, [0, 1, 2, 3]), (again(5), 2, [8, 9]), (5, 1, [4, 5, 6, 7]), (6, 0, [0, 1, 2, 3])]
    assert offered(units, 4) == expected


def test_an_order_of_ones_own_says_how_many_windows_an_epoch_has():
    windows = Windows(Plan(6, 2, order=Growing()), Pack(8, window=4))
    assert [windows.count(epoch) for epoch in range(4)] == [2, 3, 5, 6]
    epochs = [epoch for epoch, _, _ in offered(PackedUnits(windows), 10)]
    assert epochs == [0] * 2 + [1] * 3 + [2] * 5


def test_of_an_empty_dataset_nothing_is_offered():
    assert offered(PackedUnits(Windows(Plan(0, 2), Pack(8))), 1) == []


def test_shards_share_out_all_positions_once():
    found = []
    for shard in range(3):
        units = PackedUnits(Windows(Plan(29, 2, shuffle=True, shard=(shard, 3)), Pack(8, window=4)))
        found += [index for epoch, _, indices in offered(units, 9) if epoch == 0 for index in indices]
    assert sorted(found) == np.arange(29).tolist()
