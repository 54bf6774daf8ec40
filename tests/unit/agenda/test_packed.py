"""Windows of an epoch, also where an order of one's own says how many positions it has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from stoker.agenda import IndexedAgenda
from stoker.agenda.packed import PackedAgenda
from stoker.agenda.packed.units import PackedUnits
from stoker.agenda.packed.windows import Windows
from stoker.collation import Pack
from stoker.plan import ChunkCursor, Cursor, Mixture, Plan, Recipe, Sequential, again
from stoker.sources import IndexedSource


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


def mixed(size):
    """Epochs of 21 samples."""
    recipe = Recipe(("web", "code"), (100, 100), ((0, (1.0, 0.0)),), "quota", 21)
    return Plan(200, size, order=Mixture.of(recipe, stride=size, seed=0))


def test_weights_that_are_set_when_all_of_an_epoch_was_handed_out_hold_from_the_next_one_on():
    """Its last unit is short: the next epoch does not begin where a full one would have ended."""
    source = IndexedSource.of(range(200))
    batches, windows = (
        IndexedAgenda(mixed(8), source, lambda plan: 1),
        PackedAgenda(mixed(2), Pack(9, window=8), source),
    )
    for agenda, cursor in ((batches, Cursor()), (windows, ChunkCursor())):
        list(islice(agenda.units.runs(lambda: 1), 3))
        assert agenda.set_weights((0.0, 1.0), cursor, None, ahead=True) == (3, False)
        assert agenda.plan.order.stream.segments[-1].start == 21


def test_weights_never_change_what_is_in_a_window_that_something_was_taken_of():
    """It is made again after a resume, and must have the same rows."""
    agenda = PackedAgenda(mixed(2), Pack(9, window=4), IndexedSource.of(range(200)))
    cursor = ChunkCursor(place=1, taken=(2,), partly=((3, 1),), waiting=((2, 0),))
    assert agenda.set_weights((0.0, 1.0), cursor, None, ahead=False) == (0, False)
    assert agenda.plan.order.stream.segments[-1].start == 16
