"""``stoker.torch.BatchSampler``: a DataLoader has the batches that a ``stoker.Loader`` has, and resumes among them."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch.utils.data

import stoker
from stoker.torch import BatchSampler, DataLoader

MIX = stoker.Mix({"web": list(range(60)), "code": list(range(100, 130))}, {"web": 2, "code": 1}, length=50)
LENGTHS = np.random.default_rng(0).integers(1, 40, 60)
NUMBERS = np.arange(60)

CASES = {
    "mix": (MIX, {"shuffle": True}),
    "weights": (NUMBERS, {"order": stoker.Weighted(NUMBERS + 1.0)}),
    "buckets": (NUMBERS, {"order": stoker.Buckets(LENGTHS, max_tokens=100), "shuffle": True}),
    "nearby": (NUMBERS, {"shuffle": 8, "drop_last": True}),
    "shard": (NUMBERS, {"shuffle": True, "shard": (1, 3)}),
}


def batches(loader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loader_class", [DataLoader, torch.utils.data.DataLoader])
def test_epoch_after_epoch_has_the_batches_of_a_loader(case, loader_class):
    dataset, options = CASES[case]
    sampler = BatchSampler(dataset, 4, **options)
    loader = loader_class(dataset, batch_sampler=sampler)
    with stoker.Loader(dataset, 4, **options) as ours:
        due = [batches(ours) for _ in range(3)]
        assert len(sampler) == len(loader) == len(ours)
    assert [batches(loader) for _ in range(3)] == due
    sampler.set_epoch(1)
    assert batches(loader) == due[1]


@pytest.mark.parametrize("case", ["mix", "buckets"])
@pytest.mark.parametrize(("workers", "later"), [(0, 2), (2, 0)])
def test_a_state_leads_to_the_next_batch_and_to_the_next_epoch(case, workers, later):
    dataset, options = CASES[case]

    def made(count: int) -> DataLoader:
        return DataLoader(dataset, batch_sampler=BatchSampler(dataset, 4, **options), num_workers=count)

    whole = made(0)
    due = [batches(whole) for _ in range(3)]
    for taken in (0, 1, len(due[1]) - 1, len(due[1])):
        first = made(workers)
        assert batches(first) == due[0]
        running = iter(first)
        begun = [next(running).tolist() for _ in range(taken)]
        if taken == len(due[1]):
            assert next(running, None) is None
        again = made(later)
        again.load_state_dict(first.state_dict())
        rest = [batches(again)] if taken == len(due[1]) else [begun + batches(again), batches(again)]
        assert rest == due[3 - len(rest) :]


OTHERS = {"web": list(range(60)), "new": list(range(9))}


@pytest.mark.parametrize(
    ("dataset", "options", "what"),
    [
        (stoker.Mix(OTHERS, {"web": 2, "new": 1}, length=50), {}, "sources"),
        (stoker.Mix({"web": list(range(60)), "code": list(range(30))}, [1, 1], length=50), {}, "schedule"),
        (MIX, {"seed": 1}, "seed"),
        (MIX, {"shard": (0, 2)}, "shards"),
        (NUMBERS, {}, "length"),
    ],
)
def test_a_state_of_another_order_is_refused(dataset, options, what):
    first = DataLoader(MIX, batch_sampler=BatchSampler(MIX, 4, shuffle=True))
    running = iter(first)
    next(running)
    state = json.loads(json.dumps(first.state_dict()))
    other = DataLoader(dataset, batch_sampler=BatchSampler(dataset, 4, shuffle=True, **options))
    other.load_state_dict(state)
    with pytest.raises(stoker.StateError, match=f"whose {what} is"):
        next(iter(other))


def test_a_loop_that_is_broken_off_is_followed_by_the_next_epoch():
    sampler = BatchSampler(NUMBERS, 4, shuffle=True)
    loader = DataLoader(NUMBERS, batch_sampler=sampler)
    next(iter(loader))
    with stoker.Loader(NUMBERS, 4, shuffle=True) as ours:
        ours.set_epoch(1)
        assert batches(loader) == batches(ours)


def test_a_mixture_without_end_goes_on():
    endless = stoker.Mix({"a": list(range(5)), "b": list(range(100, 103))}, ends="never")
    loader = DataLoader(endless, batch_sampler=BatchSampler(endless, 4))
    running = iter(loader)
    assert len([next(running) for _ in range(30)]) == 30
    with pytest.raises(TypeError, match="ends='never'"):
        len(loader)


def test_it_pickles_and_refuses_what_a_loader_refuses():
    sampler = BatchSampler(NUMBERS, 4, shuffle=True)
    assert list(pickle.loads(pickle.dumps(sampler))) == list(sampler)
    with pytest.raises(ValueError, match="batch_size is 0"):
        BatchSampler(NUMBERS, 0)
    with pytest.raises(ValueError, match="shuffle=True with order=Weighted"):
        BatchSampler(NUMBERS, 4, shuffle=True, order=stoker.Weighted(NUMBERS + 1.0))


@pytest.mark.parametrize("state", [{}, {"epoch": 1}, {"epoch": "x", "order": {}}, {"epoch": 1, "order": 3}, [], None])
def test_what_is_no_state_is_refused(state):
    sampler = BatchSampler(NUMBERS, 4)
    with pytest.raises(stoker.StateError, match="no state of a BatchSampler"):
        sampler.load_state_dict(state)
    assert sampler.epoch == 0


@pytest.mark.parametrize("state", [{}, {"epoch": 1}, {"epoch": 1, "step": None}, None])
def test_what_is_no_state_of_its_iterator_is_refused(state):
    with pytest.raises(stoker.StateError, match="no state of an iterator"):
        iter(BatchSampler(NUMBERS, 4)).load_state_dict(state)


def with_weights(workers: int, *, ends: str | None = None) -> tuple[BatchSampler, DataLoader]:
    sources = {"web": list(range(60)), "code": list(range(100, 160))}
    mix = stoker.Mix(sources, {"web": 3, "code": 1}, **({"ends": ends} if ends else {"length": 24}))
    sampler = BatchSampler(mix, 4, shuffle=True)
    return sampler, DataLoader(mix, batch_sampler=sampler, num_workers=workers)


@pytest.mark.parametrize(("workers", "later"), [(0, 2), (2, 0)])
def test_weights_that_are_set_hold_from_the_next_loop_on_and_are_part_of_the_state(workers, later):
    sampler, loader = with_weights(workers)
    running = iter(loader)
    begun = [next(running).tolist() for _ in range(2)]
    sampler.set_weights({"web": 0, "code": 1})
    sampler.set_weights({"web": 1, "code": 1})  # the last ones hold
    first = begun + batches(running)
    assert sum(index >= 100 for batch in first for index in batch) == 6
    second = iter(loader)
    begun = [next(second).tolist() for _ in range(2)]
    state = json.loads(json.dumps(loader.state_dict()))
    rest = batches(second)
    assert sum(index >= 100 for batch in begun + rest for index in batch) == 12
    third = batches(loader)

    resumed, again = with_weights(later)
    again.load_state_dict(state)
    assert [batches(again), batches(again)] == [rest, third]
    resumed.set_weights([1, 0])
    assert max(index for batch in batches(again) for index in batch) < 100


def test_a_state_without_weights_that_were_set_has_those_of_the_mixture_again():
    sampler, loader = with_weights(0)
    state, due = loader.state_dict(), batches(loader)
    sampler.set_weights([0, 1])
    assert batches(loader) != due
    loader.load_state_dict(state)
    assert batches(loader) == due


def test_weights_are_those_of_a_mixture_and_of_an_epoch_that_comes():
    with pytest.raises(TypeError, match=r"stoker\.Mix"):
        BatchSampler(NUMBERS, 4).set_weights([1])
    sampler, loader = with_weights(0, ends="never")
    with pytest.raises(ValueError, match="code"):
        sampler.set_weights({"web": 1})
    sampler.set_weights([0, 1])
    assert min(next(iter(loader)).tolist()) >= 100
    with pytest.raises(ValueError, match="never"):
        sampler.set_weights([1, 0])
    assert sampler.indices(0, 1) is not None
