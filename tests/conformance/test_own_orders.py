"""``order=`` for real: whoever works, wherever it resumes, with functions and samplers of the user's."""

from __future__ import annotations

import functools
import json
from collections import Counter

import numpy as np
import pytest

import stoker
from stoker import Buckets, Chunks, Inline, Loader, Processes, Rotation, StateError, Threads, Weighted
from stoker.testing import assert_resumable
from tests.streams import epochs

DATA = np.arange(40)
LENGTHS = np.random.default_rng(0).integers(1, 30, len(DATA))
WEIGHTS = np.arange(len(DATA)) % 4


def by_epoch(epoch):
    """More indices in each epoch."""
    return np.random.default_rng(epoch).permutation(len(DATA))[: 10 + 3 * epoch]


class Sampler:
    """Like torch's: it can be iterated again and again."""

    def __init__(self):
        self.epoch, self.asked = 0, []

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        self.asked.append(self.epoch)
        return iter(by_epoch(self.epoch).tolist())


ORDERS = {
    "indices": [3, 3, 1, 39, 0, 7, 7, 7, 20, 21, 22, 23, 24],
    "weights": Weighted(WEIGHTS, length=25),
    "weights, each once": Weighted(WEIGHTS, False),
    "buckets": Buckets(LENGTHS),
    "budget": Buckets(LENGTHS, max_tokens=60),
    "function": by_epoch,
    "sampler": Sampler(),
}
orders = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)


def shuffle_of(order):
    return {"shuffle": True} if isinstance(order, Buckets | list) else {}


def make(order, size=4, **options):
    return Loader(DATA, size, order=order, **shuffle_of(order), **options)


def listed(loader, count):
    return [[batch.tolist() for batch in epoch] for epoch in epochs(loader, count)]


def flat(batches):
    return [index for batch in batches for index in batch]


@orders
def test_the_stream_is_the_same_on_any_backend(order, backend):
    with make(order) as loader:
        expected = listed(loader, 3)
    assert expected[0] != expected[1]
    with make(order, workers=backend) as loader:
        assert listed(loader, 3) == expected


@orders
@pytest.mark.parametrize(
    "options",
    [{}, {"drop_last": True}, {"shard": (1, 3)}, pytest.param({"in_order": False}, marks=pytest.mark.exhaustive)],
    ids=str,
)
def test_it_resumes_at_any_step(order, options):
    assert_resumable(
        lambda: make(order, **options),
        resume_with=lambda: make(order, workers=Threads(2), **options),
        in_order=options.get("in_order", True),
    )


@orders
def test_a_run_goes_on_with_other_shards(order):
    with make(order) as loader:
        expected = [flat(epoch) for epoch in listed(loader, 2)]
    with make(order, shard=(0, 2)) as first, make(order, shard=(1, 2)) as second:
        found = [*next(iter(first)).tolist(), *next(iter(second)).tolist()]
        state = json.loads(json.dumps(first.state_dict()))
        assert state == second.state_dict()
    for shard in range(3):
        with make(order, shard=(shard, 3), even_shards=True) as loader:
            loader.load_state_dict(state)
            rest = listed(loader, 1)[0]
            found += flat(rest)
    assert set(found) == set(expected[0])
    assert sum((Counter(found) - Counter(expected[0])).values()) <= 2  # repeated in the last round, for 3 shards


def test_a_function_is_asked_once_an_epoch_and_not_ahead(backend):
    asked = []

    def order(epoch):
        asked.append(epoch)
        return by_epoch(epoch)

    with Loader(DATA, 4, order=order, workers=backend) as loader:
        assert len(loader) == 3
        for epoch in range(3):
            for batch in loader:
                assert asked == [*range(epoch + 1)]
                del batch
        assert loader.state_dict()["epoch"] == 3
        loader.warm_up()
        assert [len(batch) for batch in loader] == [4, 4, 4, 4, 3]
        assert asked == [0, 1, 2, 3]


def test_a_sampler_is_told_the_epoch_and_iterated_once_for_each():
    sampler = Sampler()
    with Loader(DATA, 4, order=sampler, workers=Threads(2)) as loader:
        found = listed(loader, 3)
    assert sampler.asked == [0, 1, 2]
    assert [flat(epoch) for epoch in found] == [by_epoch(epoch).tolist() for epoch in range(3)]


def test_torch_samplers():
    data = pytest.importorskip("torch.utils.data")
    import torch

    def sampler(seed):
        return data.RandomSampler(DATA, generator=torch.Generator().manual_seed(seed))

    expected = list(sampler(1))
    with Loader(DATA, 4, order=sampler(1)) as loader:
        iterator = iter(loader)
        found = [*next(iterator).tolist(), *next(iterator).tolist()]
        state = loader.state_dict()
    assert found == expected[:8]
    with Loader(DATA, 4, order=sampler(1)) as loader:
        loader.load_state_dict(state)
        assert flat(listed(loader, 1)[0]) == expected[8:]
    with Loader(DATA, 4, order=sampler(2)) as loader, pytest.raises(StateError, match="must give the same indices"):
        loader.load_state_dict(state)
    with Loader(DATA, 4, order=sampler(1)) as loader:
        later = listed(loader, 3)[2]
        iterator = iter(loader)
        rest = [batch.tolist() for batch in iterator]
    with Loader(DATA, 4, order=sampler(1)) as loader:
        loader.set_epoch(2)
        assert listed(loader, 2) == [later, rest]
    distributed = data.DistributedSampler(DATA, num_replicas=2, rank=0, seed=3)
    with Loader(DATA, 4, order=distributed) as loader:
        assert [len(flat(epoch)) for epoch in listed(loader, 2)] == [20, 20]
    with pytest.raises(ValueError, match="takes one share of 2 itself"):
        Loader(DATA, 4, order=distributed, shard=(0, 2))
    with pytest.raises(TypeError, match="which gives whole batches: pass the sampler of its samples"):
        Loader(DATA, 4, order=data.BatchSampler(DATA, 4, False))


@orders
def test_seeking_and_skipping(order):
    with make(order) as loader:
        expected = listed(loader, 3)
    with make(order, workers=Threads(2)) as loader:
        assert loader.indices(1, 1) == expected[1][1]
        for step in range(len(expected[1])):
            loader.seek(1, step)
            assert listed(loader, 2) == [expected[1][step:], expected[2]]
    if not hasattr(order, "__iter__") or isinstance(order, list):  # a sampler is asked for epochs in their order
        steps = [(epoch, step) for epoch in range(3) for step in range(len(expected[epoch]))]
        for count, (epoch, step) in enumerate(steps):
            with make(order) as loader:
                loader.skip(count)
                assert listed(loader, 1) == [expected[epoch][step:]]
    with make(order) as loader, pytest.raises(IndexError, match="no step 99"):
        loader.seek(0, 99)


def test_indices_of_other_epochs_do_not_disturb_the_one_that_is_running():
    with Loader(DATA, 4, order=(sampler := Sampler()), workers=Threads(2)) as loader:
        iterator = iter(loader)
        found = [next(iterator).tolist()]
        assert [loader.indices(epoch, 0) for epoch in (5, 6, 7)] == [by_epoch(e)[:4].tolist() for e in (5, 6, 7)]
        found += [batch.tolist() for batch in iterator]
        assert flat(found) == by_epoch(0).tolist()
        assert sampler.asked == [0, 5, 6, 7]


def test_a_sampler_that_shards_itself_causes_no_warning_that_all_read_all(monkeypatch):
    class Share(Sampler):
        num_replicas = 2

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with Loader(DATA, 4, order=Share()) as loader:  # warnings are errors
        assert flat(listed(loader, 1)[0]) == by_epoch(0).tolist()
    with pytest.raises(ValueError, match="takes one share of 2 itself"):
        Loader(DATA, 4, order=Share(), shard="auto")


def test_an_epoch_of_a_function_may_be_empty():
    with Loader(DATA, 4, order=lambda epoch: [[1, 2], [], [3]][epoch], workers=Threads(2)) as loader:
        assert listed(loader, 3) == [[[1, 2]], [], [[3]]]


def test_what_a_function_raises_comes_as_it_is_and_can_be_tried_again():
    answers = [ValueError("not yet"), [5, 6]]

    def order(epoch):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with Loader(DATA, 4, order=order) as loader:
        with pytest.raises(ValueError, match="not yet") as caught:
            iter(loader)
        assert "epoch 0" in caught.value.__notes__[0]
        assert listed(loader, 1) == [[[5, 6]]]


def test_a_dataset_that_workers_make():
    for order in (by_epoch, Weighted(WEIGHTS), Buckets(LENGTHS, max_tokens=60), [5, 6, 7]):
        with Loader(functools.partial(np.arange, 40), 4, order=order) as loader, make_plain(order) as expected:
            assert len(loader) == len(expected)
            assert listed(loader, 2) == listed(expected, 2)
    with (
        Loader(functools.partial(np.arange, 40), 4, order=[40]) as loader,
        pytest.raises(ValueError, match="40 samples"),
    ):
        next(iter(loader))


def make_plain(order):
    return Loader(DATA, 4, order=order)


class Failing:
    def __len__(self):
        return len(DATA)

    def __getitem__(self, index):
        if index == 7:
            raise ValueError(index)
        return index


@pytest.mark.parametrize("workers", [Inline(), Processes(1)], ids=repr)
def test_samples_that_fail_are_left_out_of_their_batches(workers):
    for order in (by_epoch, Buckets(LENGTHS, max_tokens=60), Weighted(WEIGHTS, False)):
        with Loader(Failing(), 4, order=order, on_error="skip", workers=workers) as loader, make_plain(order) as good:
            expected = [[i for i in batch if i != 7] for epoch in listed(good, 2) for batch in epoch]
            found = [batch.tolist() for _ in range(2) for batch in loader]
            assert found == [batch for batch in expected if batch]


def test_budgets_hold_for_padded_batches():
    texts = [np.full(n, i) for i, n in enumerate(LENGTHS)]
    buckets = Buckets(-(-LENGTHS // 4) * 4, max_tokens=64)
    with Loader(texts, order=buckets, shuffle=True, collate=stoker.pad(multiple_of=4)) as loader:
        for _ in range(2):
            batches = list(loader)
            assert all(batch.size <= 64 for batch in batches)
            assert Counter(int(row[0]) for batch in batches for row in batch) == Counter(range(len(texts)))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"order": Weighted(WEIGHTS), "shuffle": True}, "draws by chance|random already"),
        ({"order": [1], "rotation": Rotation(2)}, "rotation"),
        ({"order": [1], "on_error": "replace"}, "replace"),
        ({"order": Buckets(LENGTHS), "batch_size": None}, "batch_size=None"),
        ({"order": Buckets(LENGTHS), "shuffle": 5}, "shuffle=5"),
        ({"order": [40]}, "order\\[0\\] is 40, and the dataset has 40 samples"),
        ({"order": Weighted([1, 2])}, "2 weights, and the dataset has 40"),
        ({"order": Buckets([1, 2])}, "2 lengths, and the dataset has 40"),
        ({"order": iter([1])}, "one epoch only"),
        ({"order": {1, 2}}, "order=<set>"),
        ({"order": "abc"}, "order=<str>"),
        ({"order": 5}, "order=<int>"),
        ({"order": Sampler}, "order=Sampler"),
        ({"order": [0.5]}, "float64"),
    ],
)
def test_orders_that_make_no_sense_are_refused_in_the_constructor(wrong, error):
    with pytest.raises((TypeError, ValueError), match=error):
        Loader(DATA, **wrong)


def test_chunks_have_no_order(tmp_path):
    np.save(tmp_path / "a.npy", DATA)
    with pytest.raises(ValueError, match="Chunks has not"):
        Loader(Chunks([str(tmp_path / "a.npy")]), 4, order=[1])
