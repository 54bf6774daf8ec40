"""Shares of a round: between them, the shards have all of it, and no sample twice but where that is said."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.batched_order import BatchedOrder
from stoker.plan.round_shares import RoundShares

SHARDS = st.integers(1, 7)


def all_shares(size: int, shards: int, *, drop_last: bool = False, even: bool = True) -> list[RoundShares]:
    return [RoundShares(size, (shard, shards), drop_last=drop_last, even=even) for shard in range(shards)]


@given(size=st.integers(1, 5), shards=SHARDS, even=st.booleans(), data=st.data())
def test_a_last_round_is_split_evenly(size, shards, even, data):
    shares = all_shares(size, shards, even=even)
    rest = data.draw(st.integers(1, max(size * shards - 1, 1)))
    parts = [range(*share.of_last_round(rest)) for share in shares]
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    found = [position for part in parts for position in part]
    if rest >= shards or not even:
        assert found == list(range(rest))
    else:
        assert set(found) == set(range(rest))
        assert set(sizes) == {1}
    assert [not part for part in parts] == [rest <= share.too_few for share in shares]


@given(size=st.integers(1, 5), shards=SHARDS, positions=st.integers(0, 80), drop_last=st.booleans(), even=st.booleans())
def test_positions_in_a_row_are_as_many_as_a_shard_has_in_rounds(size, shards, positions, drop_last, even):
    shares = all_shares(size, shards, drop_last=drop_last, even=even)
    rows = [range(first, first + count) for first, count in (share.in_a_row(positions) for share in shares)]
    full, rest = divmod(positions, size * shards)
    for share, row in zip(shares, rows, strict=True):
        start, stop = (0, 0) if drop_last or not rest else share.of_last_round(rest)
        assert len(row) == full * size + stop - start
    if not drop_last and (not rest or rest >= shards or not even):
        assert [position for row in rows for position in row] == list(range(positions))


@given(shards=SHARDS, sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12), even=st.booleans())
def test_whole_batches_go_round_and_the_last_ones_are_shared(shards, sizes, even):
    bounds = np.cumsum([0, *sizes])
    order = BatchedOrder(np.arange(bounds[-1]), bounds, np.array(sizes))
    found = []
    for position in range(0, len(sizes), shards):
        rest = len(sizes) - position
        for share in all_shares(1, shards, even=even):
            if rest > share.too_few:
                start, stop = share.of_batches(order, position, rest)
                assert start < stop
                found.append(range(start, stop))
    samples = [sample for part in found for sample in part]
    assert set(samples) == set(range(bounds[-1]))
    if not even:
        assert sorted(samples) == list(range(bounds[-1]))
        assert sorted(len(part) for part in found) == sorted(sizes)
