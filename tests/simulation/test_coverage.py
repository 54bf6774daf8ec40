"""The checks of coverage say yes to the plan, and no to one that is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.simulation import coverage
from benchmarks.simulation.coverage import counted, first_middle_last, one_to_one, tiled

from stoker.plan import Plan

HUGE = Plan(10**12 + 12_345, 32, shuffle=True, shard=(0, 10_000))


@pytest.mark.parametrize("shards", [1, 3, 64])
@pytest.mark.parametrize("shuffle", [False, True, 100])
def test_small_plans_have_each_sample_once(shards, shuffle):
    assert counted(Plan(5003, 16, shuffle=shuffle, shard=(0, shards), even_shards=False)).is_exact


def test_rounds_of_ten_thousand_shards_have_neither_gap_nor_overlap():
    found = tiled(HUGE, first_middle_last(HUGE))
    assert found.is_exact
    assert found.batches == 6 * 10_000


def test_where_fewer_samples_than_shards_are_left_some_are_repeated_only_if_shards_are_to_be_even():
    even, uneven = (replace(HUGE, length=10**12 + 7, even_shards=is_even) for is_even in (True, False))
    last = [even.length - 7]
    assert not tiled(even, last).is_exact
    assert tiled(uneven, last).is_exact


def test_indices_far_from_each_other_are_all_different():
    assert one_to_one(HUGE, windows=3, size=20_000).is_exact


def test_a_sample_that_comes_twice_is_found(monkeypatch):
    plan = Plan(5003, 16, shuffle=True, shard=(0, 4))
    twice = [*coverage.shards_of(plan)[:3], replace(plan, shard=(2, 4))]
    monkeypatch.setattr(coverage, "shards_of", lambda _: twice)
    assert not counted(plan).is_exact
    assert not tiled(plan, first_middle_last(plan)).is_exact


def test_an_order_that_is_not_one_to_one_is_found(monkeypatch):
    monkeypatch.setattr(Plan, "indices", lambda plan, batch: [at // 2 for at in range(batch.start, batch.stop)])
    assert not one_to_one(HUGE, windows=3, size=1000).is_exact
