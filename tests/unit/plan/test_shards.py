from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.plan import Batch, Plan

shuffles = st.sampled_from([False, True, 7])
sizes = st.integers(1, 64)


def family(length: int, size: int | None, shards: int, **options: object) -> list[Plan]:
    return [Plan(length, size, shard=(i, shards), **options) for i in range(shards)]  # type: ignore[arg-type]


def rounds(plans: list[Plan], epoch: int, position: int = 0) -> list[tuple[Batch, ...]]:
    """The batches of each round, one for each shard; strict, so every shard has the same number."""
    return list(zip(*(plan.batches(epoch, position) for plan in plans), strict=True))


def positions(batches: tuple[Batch, ...]) -> list[int]:
    return [position for batch in batches for position in range(batch.start, batch.stop)]


@settings(max_examples=200)
@given(st.integers(0, 64 * 6), sizes, sizes)
def test_every_round_is_the_next_piece_of_the_global_order(length: int, size: int, shards: int) -> None:
    at = 0
    for batches in rounds(family(length, size, shards), 0):
        assert {batch.position for batch in batches} == {at}
        found = positions(batches)
        rest = length - at
        if rest >= shards:  # nothing repeated
            assert found == list(range(at, min(at + size * shards, length)))
        else:  # each at least once, in order, one for each shard
            assert len(found) == shards
            assert found == sorted(found)
            assert sorted(Counter(found)) == list(range(at, length))
        at += size * shards
    assert at >= length


@given(st.integers(0, 64), sizes, sizes)
def test_batches_of_a_round_differ_by_one_sample_at_most(length: int, size: int, shards: int) -> None:
    for batches in rounds(family(length, size, shards), 0):
        counts = [batch.stop - batch.start for batch in batches]
        assert max(counts) - min(counts) <= 1
        assert min(counts) >= 1
        assert max(counts) <= size


@given(st.integers(0, 500), sizes, st.integers(1, 12), st.booleans(), shuffles)
def test_every_shard_has_len_batches(length: int, size: int, shards: int, drop_last: bool, shuffle: bool) -> None:
    plans = family(length, size, shards, drop_last=drop_last, shuffle=shuffle)
    assert [len(plan) for plan in plans] == [len(rounds(plans, 2))] * shards


@given(st.integers(0, 500), sizes, st.integers(1, 12))
def test_drop_last_leaves_full_batches_only(length: int, size: int, shards: int) -> None:
    found = rounds(family(length, size, shards, drop_last=True), 0)
    assert [positions(batches) for batches in found] == [
        list(range(at, at + size * shards)) for at in range(0, length - size * shards + 1, size * shards)
    ]


@given(st.integers(0, 500), sizes, st.integers(1, 12), shuffles, st.integers(0, 3))
def test_the_union_of_the_shards_is_the_whole_order(
    length: int, size: int, shards: int, shuffle: bool, epoch: int
) -> None:
    plans = family(length, size, shards, shuffle=shuffle, seed=5)
    found = Counter(i for plan in plans for batch in plan.batches(epoch) for i in plan.indices(batch))
    # The one exception: where fewer samples than shards are left, some come more than once.
    rest = length % (size * shards)
    repeats = shards - rest if 0 < rest < shards else 0
    assert sorted(found) == list(range(length))
    assert found.total() == length + repeats


@given(
    st.integers(1, 300),
    st.one_of(st.none(), st.integers(1, 20)),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=5),
    shuffles,
)
def test_a_run_that_changes_its_shards_at_any_step_continues_the_global_order(
    length: int, size: int | None, legs: list[tuple[int, int]], shuffle: bool
) -> None:
    """Each leg is (shards, rounds); the last goes on to the end of the epoch."""
    at, found = 0, []
    legs = [*legs, (1, length)]
    for shards, steps in legs:
        plans = family(length, size, shards, shuffle=shuffle)
        if length - at < shards:
            continue  # the documented repeats
        for batches in rounds(plans, 0, at)[:steps]:
            if length - at < shards:
                break
            found += [i for plan, batch in zip(plans, batches, strict=True) for i in plan.indices(batch)]
            at = plans[0].next_position(at)
    whole = Plan(length, length, shuffle=shuffle)
    assert found == list(whole.indices(whole.batch(0, 0)))


def test_the_examples_in_the_design_note() -> None:
    def spans(shards: int, length: int) -> list[list[tuple[int, int]]]:
        return [[(b.start, b.stop) for b in batches] for batches in rounds(family(length, 2, shards), 0)]

    assert spans(3, 10) == [[(0, 2), (2, 4), (4, 6)], [(6, 7), (7, 8), (8, 10)]]
    assert spans(3, 8) == [[(0, 2), (2, 4), (4, 6)], [(6, 7), (6, 7), (7, 8)]]
