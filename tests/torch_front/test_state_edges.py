"""States from where an epoch begins and ends, and what they hold there: as torchdata's StatefulDataLoader has it."""

from __future__ import annotations

import json

import pytest

from tests.torch_front.datasets import Numbers, Split, Uneven
from tests.torch_front.resuming import Both, Positioned, Tallied, interrupted, read, resumed, stored, take

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torchdata", reason="torchdata is not installed")
data = torch.utils.data

COUNT = 13


@pytest.fixture
def make(stateful_class, num_workers):
    def make(dataset=None, **arguments):
        arguments = {"batch_size": 3, "num_workers": num_workers, **arguments}
        return stateful_class(Numbers(COUNT) if dataset is None else dataset, **arguments)

    return make


def begun_before(cls):
    """A dataset that has a past."""
    dataset = cls(COUNT)
    dataset.made = 100
    return dataset


class Aging(data.IterableDataset):
    """A stream that tells in which epoch of its own it is."""

    def __init__(self, count=6):
        self.count, self.epoch, self.position = count, 0, 0

    def __iter__(self):
        while self.position < self.count:
            self.position += 1
            yield 100 * self.epoch + self.position
        self.position, self.epoch = 0, self.epoch + 1

    def state_dict(self):
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state):
        self.epoch, self.position = state["epoch"], state["position"]


def raise_value_error(worker):
    raise ValueError("no such worker")


def test_the_epochs_after_a_state_from_before_the_start_are_shuffled_anew(make):
    loader = make(shuffle=True, batch_size=COUNT)
    loader.load_state_dict(stored(loader.state_dict()))
    orders = [tuple(read(loader)[0]) for _ in range(4)]
    assert len(set(orders)) == 4


def test_after_a_state_from_the_end_the_next_shuffle_is_the_one_that_followed(make):
    loader = make(shuffle=True)
    read(loader)
    state = stored(loader.state_dict())
    following = read(loader)
    fresh = make(shuffle=True)
    fresh.load_state_dict(state)
    assert read(fresh) == following
    assert read(fresh) != following


def test_a_state_from_before_the_start_holds_that_of_the_sampler(make):
    sampler = Positioned(COUNT)
    sampler.position = 6
    state = stored(make(sampler=sampler).state_dict())
    assert resumed(lambda: make(sampler=Positioned(COUNT)), state, epochs=1) == [
        [[10, 4, 11], [5, 12, 6], [0]],
    ]


def test_a_state_from_before_the_first_batch_holds_that_of_the_sampler(make):
    sampler = Positioned(COUNT)
    sampler.position = 6
    loader = make(sampler=sampler)
    iterator = iter(loader)
    state = stored(loader.state_dict())
    rest = read(iterator)
    assert resumed(lambda: make(sampler=Positioned(COUNT)), state, epochs=1) == [rest]


@pytest.mark.parametrize("steps", [0, 1])
def test_a_state_holds_what_the_dataset_was_before_each_workers_first_batch(make, steps):
    state, rest, _ = interrupted(lambda: make(begun_before(Tallied)), steps, epochs=1)
    assert resumed(lambda: make(Tallied(COUNT)), state, epochs=1) == rest


def test_a_worker_init_fn_that_raises_is_heard_of_when_states_are(make, num_workers):
    if num_workers:
        with pytest.raises(ValueError, match="no such worker"):
            iter(make(Tallied(COUNT), worker_init_fn=raise_value_error))


@pytest.mark.parametrize("every", [1, 4])
def test_persistent_workers_are_as_they_were_at_the_end(stateful_class, every):
    def make():
        return stateful_class(
            Aging(), batch_size=2, num_workers=2, persistent_workers=True, snapshot_every_n_steps=every
        )

    loader = make()
    read(loader)
    state = stored(loader.state_dict())
    following = [read(loader), read(loader)]
    assert resumed(make, state) == following
    assert following[0][0] == [101, 102]


@pytest.mark.parametrize("kind", [Aging, lambda: Both(6)], ids=["state of the dataset", "state of both"])
def test_a_dataset_in_this_process_is_as_it_was_at_the_end(stateful_class, kind):
    loader = stateful_class(kind(), batch_size=2)
    read(loader)
    state = stored(loader.state_dict())
    following = read(loader)
    assert resumed(lambda: stateful_class(kind(), batch_size=2), state, epochs=1) == [following]


@pytest.mark.parametrize("dataset", [lambda: Numbers(COUNT), lambda: Tallied(COUNT), lambda: Split(20)])
def test_a_state_can_be_json(make, dataset):
    def sampled():
        found = dataset()
        return make(found) if isinstance(found, data.IterableDataset) else make(found, sampler=Positioned(COUNT))

    state, rest, _ = interrupted(sampled, 2, epochs=1)
    assert resumed(sampled, json.loads(json.dumps(state)), epochs=1) == rest


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 3)])
def test_another_number_of_workers_is_an_error_where_each_has_a_state(stateful_class, before, after):
    state = interrupted(lambda: stateful_class(Tallied(COUNT), 3, num_workers=before), 2)[0]
    loader = stateful_class(Tallied(COUNT), 3, num_workers=after)
    loader.load_state_dict(state)
    with pytest.raises(AssertionError):
        iter(loader)


def test_a_state_says_which_workers_have_given_all(stateful_class):
    loader = stateful_class(Uneven(1, 6), batch_size=1, num_workers=2)
    iterator = iter(loader)
    take(iterator, 4)
    workers = loader.state_dict()["_snapshot"]["_worker_snapshots"]
    assert [workers[f"worker_{k}"]["fetcher_state"]["fetcher_ended"] for k in range(2)] == [True, False]


def test_out_of_order_each_worker_has_its_state(stateful_class):
    def make(dataset):
        return stateful_class(dataset, batch_size=1, num_workers=2, in_order=False)

    loader = make(Tallied(COUNT))
    found = take(iter(loader), 5)
    state = stored(loader.state_dict())
    fresh = make(Tallied(COUNT))
    fresh.load_state_dict(state)
    found += read(fresh)
    indices = [index for batch in found for index in batch[0]]
    counts = [count for batch in found for count in batch[1]]
    assert sorted(indices) == list(range(COUNT))
    assert max(counts) >= 7  # of 13 by two workers: neither has begun anew
