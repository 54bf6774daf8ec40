"""Batches of like length: each sample once, within the budget, even over shards, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Buckets, Plan

lengths = st.lists(st.integers(0, 50), max_size=60)
edges = st.one_of(st.none(), st.lists(st.integers(0, 60), unique=True, max_size=6).map(sorted))


def batches(values, edges=None, *, max_tokens=None, size=4, epoch=0, shard=(0, 1), **options):
    order = Buckets(values, edges, max_tokens=max_tokens).ordering(size)
    plan = Plan(len(values), size if max_tokens is None else 1, shard=shard, order=order, **options)
    return [list(plan.indices(batch)) for batch in plan.batches(epoch)]


@given(lengths, edges, st.integers(50, 200), st.booleans(), st.integers(1, 5), st.integers(0, 2))
def test_budgets_are_kept_and_each_sample_comes_once(values, edges, budget, shuffle, shards, epoch):
    found = []
    for shard in range(shards):
        own = batches(
            values,
            edges=edges,
            max_tokens=budget,
            shuffle=shuffle,
            epoch=epoch,
            shard=(shard, shards),
            even_shards=False,
        )
        assert all(len(batch) * max(values[i] for i in batch) <= budget for batch in own)
        found += own
    assert Counter(i for batch in found for i in batch) == Counter(range(len(values)))


@given(lengths, st.integers(50, 200), st.integers(1, 9))
def test_shards_have_as_many_batches_each_and_a_sample_is_repeated_only_where_there_are_too_few(values, budget, shards):
    found = [batches(values, max_tokens=budget, shuffle=True, shard=(i, shards)) for i in range(shards)]
    assert len({len(own) for own in found}) == 1
    assert all(batch and len(batch) * max(values[i] for i in batch) <= budget for own in found for batch in own)
    counts = Counter(i for own in found for batch in own for i in batch)
    assert set(counts) == set(range(len(values)))
    alone = batches(values, max_tokens=budget, shuffle=True)
    last = alone[len(alone) - len(alone) % shards :]
    most = -(-shards // max(len(last), 1))  # shards that have one batch of the last round
    assert all(n == 1 for i, n in counts.items() if not any(i in batch and len(batch) < most for batch in last))


@given(lengths, edges, st.booleans(), st.integers(1, 7))
def test_without_a_budget_batches_are_full_and_neighbours_in_length(values, edges, shuffle, size):
    found = batches(values, edges=edges, shuffle=shuffle, size=size)
    assert Counter(i for batch in found for i in batch) == Counter(range(len(values)))
    assert [len(batch) for batch in found[:-1]] == [size] * max(len(found) - 1, 0)
    # A naive model: sorted by bucket, and cut.
    numbers = np.searchsorted(Buckets(values, edges)._edges, values, side="right").tolist()
    ordered = sorted(numbers)
    cut = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    assert Counter(tuple(sorted(numbers[i] for i in batch)) for batch in found) == Counter(map(tuple, cut))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(50, 200))
def test_all_epochs_have_as_many_batches_of_the_same_sizes(values, budget):
    sizes = [Counter(map(len, batches(values, max_tokens=budget, shuffle=True, epoch=e))) for e in range(3)]
    assert sizes[0] == sizes[1] == sizes[2]


def test_without_shuffle_batches_go_from_short_to_long():
    values = np.random.default_rng(0).integers(1, 100, 500)
    numbers = [max(values[i] // 10 for i in batch) for batch in batches(values, range(10, 100, 10), max_tokens=300)]
    assert numbers == sorted(numbers)


def test_epochs_mix_samples_and_batches_anew():
    values = np.full(512, 10)
    first, second = (batches(values, shuffle=True, epoch=epoch) for epoch in range(2))
    assert len({frozenset(batch) for batch in first} & {frozenset(batch) for batch in second}) < 5
    assert first != sorted(first)


@pytest.mark.parametrize("shards", [2, 3, 8, 16])
@pytest.mark.parametrize("kind", ["log-normal", "uniform", "two kinds"])
def test_ranks_have_the_same_number_of_tokens_within_two_percent(kind, shards):
    random, count = np.random.default_rng(1), 60_000
    values = {
        "log-normal": np.clip(random.lognormal(5.5, 0.8, count), 4, 4096),
        "uniform": random.integers(1, 2049, count),
        "two kinds": random.integers(10, 60, count) * np.where(random.random(count) < 0.9, 1, 20),
    }[kind].astype(int)
    order = Buckets(values, max_tokens=8192).ordering(1)
    plans = [Plan(count, 1, True, shard=(i, shards), order=order) for i in range(shards)]
    sums = [sum(values[plan.indices(batch)].sum() for batch in plan.batches(0)) for plan in plans]
    assert max(sums) / min(sums) < 1.02
    padded = sum(len(plans[0].indices(b)) * values[plans[0].indices(b)].max() for b in plans[0].batches(0))
    assert sums[0] / padded > 0.95  # of a batch is no padding


def sums_of(values, shards, size=None, **options):
    """Tokens of each shard in an epoch, and its number of batches."""
    order = Buckets(values, max_tokens=None if size else 8192).ordering(size or 1)
    plans = [Plan(len(values), size or 1, True, shard=(i, shards), order=order, **options) for i in range(shards)]
    return [sum(values[plan.indices(batch)].sum() for batch in plan.batches(1)) for plan in plans], len(plans[0])


@pytest.mark.parametrize("shards", [2, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_ranks_have_the_same_number_of_tokens_also_in_short_epochs(seed, shards):
    values = np.clip(np.random.default_rng(seed).lognormal(5.5, 0.8, 900 * shards), 4, 4096).astype(int)
    sums, count = sums_of(values, shards)
    assert 30 < count < 45
    assert max(sums) / min(sums) < 1.02
    whole, count = sums_of(values[: 250 * shards], shards, drop_last=True)
    assert 8 <= count <= 12
    assert max(whole) / min(whole) < 1.03


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_ranks_have_the_same_number_of_tokens_where_batches_have_one_size(shards):
    values = np.random.default_rng(1).integers(1, 2049, 32 * 50 * shards)
    sums, count = sums_of(values, shards, 32)
    assert count == 50
    assert max(sums) / min(sums) < 1.02


@pytest.mark.parametrize("max_tokens", [None, 100])
@pytest.mark.parametrize("shards", [2, 3, 5])
def test_from_any_round_on_shards_have_all_batches_whatever_shards_there_were_before(max_tokens, shards):
    values = np.random.default_rng(0).integers(1, 50, 90).tolist()
    size = 4 if max_tokens is None else 1
    order = Buckets(values, max_tokens=max_tokens).ordering(4)
    alone = list(Plan(90, size, True, order=order).batches(0))
    plans = [Plan(90, size, True, shard=(i, shards), order=order, even_shards=False) for i in range(shards)]
    for nth in (0, 1, 4, 7):
        found = [batch for plan in plans for batch in plan.batches(0, alone[nth].position)]
        samples = [i for batch in found for i in plans[0].indices(batch)]
        assert sorted(samples) == sorted(i for batch in alone[nth:] for i in plans[0].indices(batch))


def test_frozen_buckets():
    """States depend on the formula: to change it is to raise `_FORMULA`."""
    values = [3, 9, 2, 8, 3, 9, 1, 1, 5, 7, 7, 2]
    assert batches(values, max_tokens=20, shuffle=True) == FROZEN


FROZEN = [[8, 9], [10, 3], [1, 5], [7, 6, 11, 2, 0, 4]]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"lengths": [1, -2]}, "lengths\\[1\\] is -2"),
        ({"lengths": [1.5]}, "float64"),
        ({"lengths": [True]}, "bool"),
        ({"lengths": [[1], [2]]}, "shape"),
        ({"lengths": [[1], [2, 3]]}, "in a row"),
        ({"lengths": None}, "shape"),
        ({"lengths": [1, 7, 9], "max_tokens": 6}, "sample 1 has length 7, and max_tokens is 6, and 1 other.*=9"),
        ({"lengths": [1], "max_tokens": 0}, "max_tokens=0"),
        ({"lengths": [1], "max_tokens": 1.5}, "max_tokens=1.5"),
        ({"lengths": [1], "max_tokens": True}, "max_tokens=True"),
        ({"lengths": [1], "edges": [3, 3]}, "rise"),
        ({"lengths": [1], "edges": [3, 2]}, "rise"),
        ({"lengths": [1], "edges": 3}, "shape"),
    ],
)
def test_wrong_arguments_are_refused(wrong, error):
    with pytest.raises((TypeError, ValueError), match=error):
        Buckets(**wrong)


def test_as_many_lengths_as_samples():
    with pytest.raises(ValueError, match="3 lengths, and the dataset has 4 samples"):
        Plan(4, 2, order=Buckets([1, 2, 3]).ordering(2)).positions_in(0)
