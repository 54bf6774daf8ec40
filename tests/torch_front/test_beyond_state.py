"""States that torchdata does not promise: other workers, batches out of order, its own states in our loader."""

from __future__ import annotations

import functools
import itertools
import json
import operator
from collections import Counter

import psutil
import pytest

import stoker
from tests.torch_front.datasets import DrawingStream, Gated, Numbers, Recorded, Split
from tests.torch_front.resuming import (
    ByIterator,
    Epochs,
    Positioned,
    Resumable,
    interrupted,
    more,
    plain,
    read,
    resumed,
    stored,
    take,
)

torch = pytest.importorskip("torch", reason="torch is not installed")
torchdata = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
data = torch.utils.data

COUNT = 13


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (1, 3), (3, 1), (2, 1)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_another_number_of_workers_goes_on_with_the_epoch(our_class, before, after, shuffle):
    state, rest, _ = interrupted(lambda: our_class(Numbers(COUNT), 3, shuffle=shuffle, num_workers=before), 2, epochs=1)
    torch.manual_seed(5)
    found = resumed(lambda: our_class(Numbers(COUNT), 3, shuffle=shuffle, num_workers=after), state, epochs=1)
    assert found == rest


def test_another_number_of_workers_with_a_sampler_that_has_a_state(our_class):
    state, rest, _ = interrupted(lambda: our_class(Numbers(COUNT), 3, sampler=Positioned(COUNT), num_workers=2), 2)
    found = resumed(lambda: our_class(Numbers(COUNT), 3, sampler=Positioned(COUNT), num_workers=0), state)
    assert found == rest


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("steps", [2, *more(0, 5)])
def test_the_epochs_after_one_shuffled_by_a_generator_follow(our_class, workers, steps):
    def make(seed=3):
        generator = torch.Generator().manual_seed(seed)
        return our_class(Numbers(COUNT), 3, shuffle=True, generator=generator, num_workers=workers)

    state, rest, _ = interrupted(make, steps, epochs=3)
    assert resumed(lambda: make(4), state, epochs=3) == rest


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_random_sampler_of_the_users_goes_on_in_its_order(our_class, workers, steps):
    def make():
        return our_class(Numbers(COUNT), 3, sampler=data.RandomSampler(Numbers(COUNT)), num_workers=workers)

    torch.manual_seed(1)
    state, rest, _ = interrupted(make, steps, epochs=1)
    torch.manual_seed(2)
    assert resumed(make, state, epochs=1) == rest


@pytest.mark.parametrize("steps", [1, 4, 7])
def test_out_of_order_nothing_is_lost_or_repeated(our_class, steps):
    def make():
        return our_class(Numbers(30), batch_size=2, shuffle=True, num_workers=2, in_order=False)

    loader = make()
    iterator = iter(loader)
    found = take(iterator, steps)
    state = stored(loader.state_dict())
    del iterator, loader
    found += resumed(make, state, epochs=1)[0]
    assert Counter(number for batch in found for number in batch) == Counter(range(30))


@pytest.mark.parametrize("later", [0, 1, 2])
def test_out_of_order_a_batch_that_others_have_overtaken_is_not_lost_and_they_are_not_repeated(our_class, gate, later):
    def make():
        return our_class(Gated(gate.path, at=0, count=8), batch_size=None, num_workers=2, in_order=False)

    loader = make()
    iterator = iter(loader)
    found = take(iterator, 3)
    assert 0 not in found
    state = stored(loader.state_dict())
    gate.open_when_waited_for()
    read(iterator)
    fresh = our_class(Numbers(8), batch_size=None, num_workers=later, in_order=False)
    fresh.load_state_dict(state)
    assert Counter(found + read(fresh)) == Counter(range(8))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_without_a_state_is_resumed_twice(our_class, workers):
    def make():
        return our_class(Split(20), batch_size=3, num_workers=workers)

    state, rest, _ = interrupted(make, 2, epochs=1)
    loader = make()
    loader.load_state_dict(state)
    iterator = iter(loader)
    assert take(iterator, 2) == rest[0][:2]
    assert resumed(make, stored(loader.state_dict()), epochs=1) == [rest[0][2:]]


def test_a_state_before_the_start_starts_nothing(our_class):
    sampler = Recorded(range(6))
    loader = our_class(Numbers(6), sampler=sampler, num_workers=2)
    before = [child.pid for child in psutil.Process().children(recursive=True)]
    generator = torch.get_rng_state()
    assert type(loader.state_dict()) is dict
    assert [child.pid for child in psutil.Process().children(recursive=True)] == before
    assert sampler.log == []
    assert torch.equal(torch.get_rng_state(), generator)


FOREIGN = {
    "map": lambda kind, workers: kind(Numbers(COUNT), 3, num_workers=workers),
    "map with a sampler": lambda kind, workers: kind(Numbers(COUNT), 3, sampler=Positioned(COUNT), num_workers=workers),
    "stream": lambda kind, workers: kind(Split(20), 3, num_workers=workers),
    "stream with a state": lambda kind, workers: kind(Resumable(20), 3, num_workers=workers),
    "iterator with a state": lambda kind, workers: kind(ByIterator(20), 3, num_workers=workers),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_state_of_torchdata_is_understood(our_class, name, workers):
    theirs = FOREIGN[name](torchdata.StatefulDataLoader, workers)
    iterator = iter(theirs)
    take(iterator, 2)
    state = stored(theirs.state_dict())
    rest = read(iterator)
    ours = FOREIGN[name](our_class, workers)
    ours.load_state_dict(state)
    assert read(ours) == rest


@pytest.mark.exhaustive
def test_the_states_of_each_step_resume_the_rest(our_class):
    """At every place, and each resumed run is interrupted again one batch later."""

    def make():
        return our_class(Numbers(COUNT), 2, shuffle=True, num_workers=2)

    loader = make()
    states, found = [stored(loader.state_dict())], []
    for batch in loader:
        states.append(stored(loader.state_dict()))
        found.append(plain(batch))
    for step, state in enumerate(states[:-1]):
        fresh = make()
        fresh.load_state_dict(state)
        iterator = iter(fresh)
        assert take(iterator, 1) == found[step : step + 1]
        again = make()
        again.load_state_dict(stored(fresh.state_dict()))
        assert read(again) == found[step + 1 :]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_is_where_it_was_at_the_end(our_class, workers):
    """torchdata sets it to where it was at the last index, so that the next epoch is empty."""

    def make():
        return our_class(Numbers(COUNT), 3, sampler=Epochs(COUNT), num_workers=workers)

    loader = make()
    read(loader)
    state = stored(loader.state_dict())
    following = read(loader)
    assert resumed(make, state, epochs=1) == [following]
    assert following != read(make())


def test_a_seeded_stream_goes_on_with_its_random_numbers(our_class):
    def make():
        return our_class(DrawingStream(6), batch_size=None, num_workers=2, seed=3)

    state, rest, _ = interrupted(make, 5, epochs=1)
    assert resumed(make, state, epochs=1) == rest


class Remembering(data.IterableDataset):
    """A stream whose state is an object that it goes on to change."""

    def __init__(self, count=300):
        self.count, self.seen = count, []

    def __iter__(self):
        while len(self.seen) < self.count:
            self.seen.append(0)
            yield len(self.seen)

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def test_a_state_is_not_changed_by_what_the_dataset_does_next(our_class):
    def make():
        return our_class(Remembering(), batch_size=1, num_workers=2)

    state, rest, _ = interrupted(make, 151, epochs=1)
    assert resumed(make, state, epochs=1) == rest


@pytest.mark.parametrize("workers", [0, 2])
def test_loading_a_state_does_not_change_it(our_class, workers):
    def make():
        return our_class(Remembering(20), batch_size=3, num_workers=workers)

    state, rest, _ = interrupted(make, 2, epochs=1)
    before = stored(state)
    assert resumed(make, state, epochs=1) == rest
    assert state == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["_num_yielded"], float("inf")),
        (["_num_yielded"], -1),
        (["_sampler_iter_yielded"], 0.5),
        (["_sampler_iter_yielded"], 2**63),
        (["fetcher_state"], 1),
        (["_IterableDataset_len_called"], None),  # none at all
        (["_stoker", "draws"], []),
        (["_stoker", "draws", "torch"], ""),
        (["_stoker", "draws", "numpy", 2], None),
        (["_stoker", "draws", "numpy", 0], "PCG64"),
        (["_stoker", "draws", "python", 0], 1),
        (["_stoker", "sampler_epochs"], 1),
    ],
    ids=str,
)
def test_a_damaged_state_is_an_error_when_it_is_loaded(our_class, path, value):
    loader = our_class(Numbers(COUNT), 3, shuffle=True)
    list(itertools.islice(loader, 2))
    state = json.loads(json.dumps(loader.state_dict()))
    *way, last = path
    place = functools.reduce(operator.getitem, way, state)
    if value is None and not way:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(stoker.StateError, match="not the state of a DataLoader"):
        our_class(Numbers(COUNT), 3, shuffle=True).load_state_dict(state)
