"""Orders, mixtures, packing, replacements and retries are the same on a cluster as in this process."""

from __future__ import annotations

import numpy as np
import pytest

import stoker
from stoker import Buckets, Loader, Mix, Pack, Weighted
from tests.streams import assert_same, epochs, kept

pytestmark = pytest.mark.timeout(200)

NUMBERS = np.arange(60)
LENGTHS = np.random.default_rng(0).integers(1, 40, 60)
MIX = Mix({"web": list(range(60)), "code": list(range(100, 130))}, {"web": 2, "code": 1}, length=50)
DOCUMENTS = [np.full(length, number) for number, length in enumerate(LENGTHS.tolist(), 1)]


class Faulty:
    """Of which one sample never works, and others only when they are asked for again."""

    def __init__(self) -> None:
        self.asked: set[int] = set()

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        if index == 7:
            raise KeyError(index)
        if index % 5 == 0 and index not in self.asked:
            self.asked.add(index)
            raise OSError("not yet")
        return index


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        pytest.param(NUMBERS, {"order": Weighted(NUMBERS + 1.0)}, id="weights", marks=pytest.mark.exhaustive),
        pytest.param(NUMBERS, {"order": lambda epoch: NUMBERS[epoch::3]}, id="function"),
        pytest.param(
            NUMBERS,
            {"order": Buckets(LENGTHS, max_tokens=100), "shuffle": True},
            id="buckets",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(MIX, {"shuffle": True}, id="mix"),
        pytest.param(DOCUMENTS, {"pack": Pack(64, window=16), "shuffle": True}, id="packing"),
        pytest.param(Faulty(), {"on_error": "replace", "retry": stoker.Retry(2, backoff=0.001)}, id="faults"),
    ],
)
def test_the_stream_is_the_same(dataset, options):
    with Loader(dataset, 4, workers=stoker.Ray(2), **options) as loader, Loader(dataset, 4, **options) as same:
        assert_same(epochs(loader, 2), epochs(same, 2))


def test_weights_that_are_set_reach_actors_that_run():
    taken = []
    for workers in (stoker.Ray(2), stoker.Inline()):
        with Loader(MIX, 4, shuffle=True, workers=workers) as loader:
            batches = iter(loader)
            got = [kept(next(batches))]
            loader.set_weights({"web": 1, "code": 3}, after=6)
            taken.append(got + [kept(batch) for batch in batches])
    assert_same([taken[0]], [taken[1]])
