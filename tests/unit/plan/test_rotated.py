"""The order of an epoch in which samples rotate, against a naive model that writes down every use."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from stoker.plan import Plan, rotation_of

SHUFFLES = [False, True, 3, 7]


class Case(NamedTuple):
    length: int
    batch_size: int | None
    times: int
    size: int | None
    shards: int
    shuffle: bool | int
    drop_last: bool

    def plan(self, shard: int = 0) -> Plan:
        return Plan(
            self.length,
            self.batch_size,
            self.shuffle,
            5,
            self.drop_last,
            (shard, self.shards),
            times=self.times,
            rotating=self.size,
        )

    def plans(self) -> list[Plan]:
        return [self.plan(shard) for shard in range(self.shards)]

    @property
    def spare(self) -> int:
        """Uses that are missing in the last round for each shard to have one: so many are repeated."""
        rest = self.length * self.times % (self.shards * (self.batch_size or 1))
        return max(0, self.shards - rest) if rest and not self.drop_last else 0


def cases(most: int = 60, **fixed: Any) -> st.SearchStrategy[Case]:
    parts: dict[str, Any] = {
        "length": st.integers(1, most),
        "batch_size": st.one_of(st.none(), st.integers(1, 20)),
        "times": st.integers(2, 6),
        "size": st.one_of(st.none(), st.integers(1, 15)),
        "shards": st.integers(1, 7),
        "shuffle": st.sampled_from(SHUFFLES),
        "drop_last": st.booleans(),
    }
    return st.builds(Case, **parts | {name: st.just(value) for name, value in fixed.items()})


def used(plan: Plan, epoch: int = 0) -> list[list[int]]:
    """The batches of an epoch, as dataset indices."""
    return [list(plan.indices(batch)) for batch in plan.batches(epoch)]


def flat(batches: list[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


def order_of(case: Case, epoch: int = 0) -> list[int]:
    """The same order without rotation: the one in which samples are made."""
    whole = Plan(case.length, case.length, case.shuffle, 5)
    return list(whole.indices(whole.batch(epoch, 0)))


def blocks_of(case: Case, shard: int) -> list[list[tuple[int, int]]]:
    """Naively, what rotates together in a shard: (dataset index, uses), block by block.

    All uses of the epoch stand in a row, sample after sample. Each shard takes as many as its batches hold.
    """
    stands = [index for index in order_of(case) for _ in range(case.times)]
    width = case.batch_size or 1
    full, rest = divmod(len(stands), width * case.shards)
    shares = [full * width] * case.shards
    if not case.drop_last:
        shares = [full * width + (k + 1) * rest // case.shards - k * rest // case.shards for k in range(case.shards)]
    begin = sum(shares[:shard])
    share = shares[shard] + (1 if case.spare and shares[shard] == full * width else 0)
    uses = list(Counter(stands[begin : begin + share]).items())  # in order
    if not uses:
        return []
    count = -(-len(uses) // (case.size or case.length))
    return [uses[k * len(uses) // count : (k + 1) * len(uses) // count] for k in range(count)]


def in_order(block: list[tuple[int, int]], times: int) -> list[int]:
    """Pass after pass, each in the order of the samples, without those that are used up."""
    return [index for turn in range(times) for index, uses in block if turn < uses]


def fewest_repeats(block: list[tuple[int, int]]) -> int:
    """How often a sample must come twice in a row, however the block is arranged."""
    uses = [count for _, count in block]
    return max(0, 2 * max(uses) - sum(uses) - 1)


@settings(max_examples=300)
@given(cases())
@example(Case(1, 1, 2, None, 1, True, False))
@example(Case(1, None, 2, 1, 5, True, False))
@example(Case(3, 4, 3, 1, 7, 3, False))
def test_each_sample_is_used_just_so_often_over_all_shards(case: Case) -> None:
    """But where the last round has fewer uses than shards: then some take one that their neighbour has, too."""
    assume(not case.drop_last)
    found = Counter(index for plan in case.plans() for index in flat(used(plan)))
    assert set(found) == set(range(case.length))
    assert min(found.values()) == case.times or case.spare
    assert min(found.values()) >= case.times
    assert found.total() == case.length * case.times + case.spare
    assert case.spare or set(found.values()) == {case.times}


@settings(max_examples=200)
@given(cases(drop_last=True))
def test_what_is_dropped_is_less_than_a_round_off_the_end_of_the_order(case: Case) -> None:
    found = Counter(index for plan in case.plans() for index in flat(used(plan)))
    stands = [index for index in order_of(case) for _ in range(case.times)]
    assert found == Counter(stands[: found.total()])
    assert len(stands) - found.total() < case.shards * (case.batch_size or 1)


@settings(max_examples=300)
@given(cases())
def test_every_shard_has_as_many_batches_and_their_sizes_differ_by_one_at_most(case: Case) -> None:
    plans = case.plans()
    sizes = [[len(batch) for batch in used(plan)] for plan in plans]
    assert [len(shard) for shard in sizes] == [len(plan) for plan in plans]
    for of_round in zip(*sizes, strict=True):
        assert max(of_round) - min(of_round) <= 1
        assert min(of_round) >= 1
    for plan, shard in zip(plans, sizes, strict=True):
        assert all(size == (case.batch_size or 1) for size in (shard if case.drop_last else shard[:-1]))
        assert plan.share_in(0) == sum(shard)


@settings(max_examples=300)
@given(cases())
def test_each_shard_goes_through_block_after_block(case: Case) -> None:
    """So no more samples than ``size`` rotate at the same time: the next ones begin when all of these are used up."""
    for shard, plan in enumerate(case.plans()):
        found = flat(used(plan))
        for block in blocks_of(case, shard):
            count = sum(uses for _, uses in block)
            assert Counter(found[:count]) == Counter(dict(block))
            assert len(block) <= (case.size or case.length)
            del found[:count]
        assert found == []


@settings(max_examples=200)
@given(cases(shuffle=False))
def test_unshuffled_each_pass_is_in_the_order_of_the_samples(case: Case) -> None:
    for shard, plan in enumerate(case.plans()):
        assert flat(used(plan)) == [index for block in blocks_of(case, shard) for index in in_order(block, case.times)]


@settings(max_examples=400)
@given(cases())
@example(Case(5, None, 2, 2, 2, True, False))
@example(Case(3, 5, 3, 3, 2, True, False))
def test_shuffled_no_sample_comes_twice_in_a_row_where_that_can_be_helped(case: Case) -> None:
    assume(case.shuffle is not False)
    for shard, plan in enumerate(case.plans()):
        repeats = sum(one == other for one, other in pairwise(flat(used(plan))))
        assert repeats == sum(map(fewest_repeats, blocks_of(case, shard)))


@settings(max_examples=200)
@given(cases(size=None), st.integers(0, 2))
def test_each_pass_has_every_sample_of_the_block_once(case: Case, epoch: int) -> None:
    """Where there is one shard, all are used alike."""
    case = case._replace(shards=1, drop_last=False)
    found = flat(used(case.plan(), epoch))
    for turn in range(case.times):
        assert sorted(found[turn * case.length : (turn + 1) * case.length]) == list(range(case.length))


@settings(max_examples=300)
@given(cases())
def test_each_shard_asks_for_its_own_samples_once_and_shares_only_those_at_its_borders(case: Case) -> None:
    made = 0
    for plan in case.plans():
        rotated, indices = rotation_of(plan, 0), flat(used(plan))
        assert rotated.count == len(set(indices))
        made += rotated.count
        numbers = [number for batch in plan.batches(0) for number in rotated.numbers(batch.start, batch.stop).tolist()]
        assert list(dict.fromkeys(sorted(numbers))) == list(range(rotated.count))
        assert len(set(zip(numbers, indices, strict=True))) == rotated.count, "one number a sample"
        uses = Counter(numbers)
        assert rotated.uses(np.arange(rotated.count)).tolist() == [uses[number] for number in range(rotated.count)]
    assert made <= case.length + case.shards - 1


@settings(max_examples=200)
@given(cases(), st.randoms(use_true_random=False))
def test_any_batch_alone_is_the_same_as_in_its_epoch(case: Case, chance: Any) -> None:
    """A pure function, whatever was asked for before: states are resumed, and workers see batches in any order."""
    plan = case.plan(case.shards - 1)
    batches, wanted = list(plan.batches(1)), used(plan, 1)
    places = list(range(len(batches)))
    chance.shuffle(places)
    for place in places:
        assert list(plan.indices(plan.batch(1, batches[place].position))) == wanted[place]
    cut = chance.randrange(len(batches) + 1)
    assert used_from(plan, cut * plan.stride) == wanted[cut:]


def used_from(plan: Plan, position: int) -> list[list[int]]:
    return [list(plan.indices(batch)) for batch in plan.batches(1, position)]


@given(st.sampled_from([True, 7]), st.integers(2, 5), st.one_of(st.none(), st.integers(6, 12)))
def test_epochs_and_passes_differ_where_it_is_shuffled(shuffle: bool | int, times: int, size: int | None) -> None:
    case = Case(40, 8, times, size, 1, shuffle, False)
    epochs = [flat(used(case.plan(), epoch)) for epoch in range(5)]
    assert len(set(map(tuple, epochs))) == len(epochs)
    if size is None:
        passes = [tuple(epochs[0][turn * 40 : (turn + 1) * 40]) for turn in range(times)]
        assert len(set(passes)) == times


def test_all_uses_of_a_pass_are_mixed() -> None:
    """Each sample is first, in some epoch's second pass, about as often as any other."""
    plan = Plan(6, 6, True, 3, times=2)
    firsts = Counter(used(plan, epoch)[1][0] for epoch in range(1200))
    assert set(firsts) == set(range(6))
    assert max(firsts.values()) < 2 * min(firsts.values())


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("size", [None, 1, 1000, 10**6])
def test_a_billion_samples_cost_nothing(shuffle: bool | int, size: int | None) -> None:
    plan = Plan(10**9, 256, shuffle, 1, shard=(3, 8), times=4, rotating=size)
    assert plan.rounds == -(-4 * 10**9 // (256 * 8))
    for number in (0, 1, plan.rounds // 2, plan.rounds - 1):
        batch = plan.batch(2, number * plan.stride)
        assert len(plan.indices(batch)) == batch.stop - batch.start
    assert rotation_of(plan, 2).count <= 10**9 // 8 + 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": 0}, "times is 0: pass how often each sample is used, 1 or more"),
        ({"times": 2.0}, "times is 2.0, a float and not an int"),
        ({"rotating": 0}, "rotating is 0: pass a number of samples"),
        ({"rotating": True}, "rotating is True"),
    ],
)
def test_wrong_fields_are_clear_errors(change: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Plan(10, 4, **change)


def test_an_example_by_hand() -> None:
    """Two shards of 5 samples, each twice, in batches of 2: shard 0 has the uses 0 0 1 1 2, shard 1 has 2 3 3 4 4."""
    shards = [Plan(5, 2, shard=(shard, 2), times=2, rotating=2) for shard in range(2)]
    assert [used(plan) for plan in shards] == [[[0, 0], [1, 2], [1]], [[2, 3], [4, 3], [4]]]
