"""Packing in an order of one's own: windows are those of the order."""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import pytest

import stoker
from stoker.testing import assert_deterministic, assert_resumable
from tests.packing.documents import Documents, all_tokens, loader, tokens_of

INDICES = np.random.default_rng(1).integers(0, 100, 77)


def by_epoch(epoch):
    """More samples in each epoch."""
    return INDICES[: 40 + 20 * epoch]


@pytest.mark.parametrize("workers", [0, stoker.Threads(2)])
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (INDICES, [INDICES, INDICES]),
        (by_epoch, [by_epoch(0), by_epoch(1)]),
        (stoker.Weighted([1] * 50 + [0] * 50, replacement=False, length=50), [range(50)] * 2),
    ],
)
def test_the_samples_of_the_order_are_packed_each_as_often_as_it_says(order, expected, workers):
    with loader(order=order, shuffle=False, workers=workers) as packed:
        assert [tokens_of(list(packed)) for _ in expected] == [all_tokens(Documents(), each) for each in expected]


@pytest.mark.parametrize("order", [INDICES, by_epoch])
def test_the_stream_is_the_same_on_any_backend_and_resumes_at_any_batch(order):
    make = functools.partial(loader, order=order, shuffle=False)
    assert_deterministic(make, functools.partial(make, workers=stoker.Processes(2)))
    assert_resumable(make, resume_with=functools.partial(make, workers=stoker.Threads(2)))


def test_shards_share_out_the_order():
    found = Counter()
    for shard in range(2):
        with loader(order=by_epoch, shuffle=False, shard=(shard, 2), even_shards=False) as packed:
            found += tokens_of(list(packed))
    assert found == all_tokens(Documents(), by_epoch(0))


def test_buckets_are_refused():
    with pytest.raises(ValueError, match=r"order=Buckets\(...\) with pack="):
        loader(order=stoker.Buckets(Documents().lengths))
