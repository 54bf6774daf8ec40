"""State of loaders over map-style datasets: as torchdata's StatefulDataLoader has it."""

from __future__ import annotations

import pytest

from tests.torch_front.datasets import Numbers, identity
from tests.torch_front.resuming import (
    Positioned,
    PositionedBatches,
    Tallied,
    interrupted,
    more,
    plain,
    read,
    resumed,
    stored,
    take,
)

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torchdata", reason="torchdata is not installed")
data = torch.utils.data

COUNT = 13  # four batches of three, and one of one


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(6)


@pytest.fixture
def make(stateful_class, num_workers):
    def make(dataset=None, **arguments):
        arguments = {"batch_size": 3, "num_workers": num_workers, **arguments}
        return stateful_class(Numbers(COUNT) if dataset is None else dataset, **arguments)

    return make


@pytest.mark.parametrize("steps", [2, *more(0, 1, 3, 4, 5)])
def test_the_rest_of_the_epoch_and_the_next_follow(make, steps):
    state, rest, _ = interrupted(make, steps)
    assert resumed(make, state) == rest
    assert rest[1] == read(make())


@pytest.mark.parametrize("steps", [0, 3, *more(1, 5)])
def test_a_shuffled_epoch_goes_on_in_its_order(make, steps):
    """Whatever the seed is when it is resumed."""
    state, rest, _ = interrupted(lambda: make(shuffle=True), steps)
    torch.manual_seed(999)
    assert resumed(lambda: make(shuffle=True), state)[0] == rest[0]


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_the_epochs_after_a_shuffled_one_follow(make, steps):
    """Where the checkpoint holds the state of torch's generator as well, as checkpoints do."""
    state, rest, generator = interrupted(lambda: make(shuffle=True), steps, epochs=3)
    loader = make(shuffle=True)
    torch.set_rng_state(generator)
    loader.load_state_dict(state)
    assert [read(loader) for _ in range(3)] == rest


@pytest.mark.parametrize("steps", [3, *more(0, 1, 5)])
def test_an_epoch_shuffled_by_a_generator_goes_on_in_its_order(make, steps):
    def seeded(seed=3):
        return make(shuffle=True, generator=torch.Generator().manual_seed(seed))

    state, rest, _ = interrupted(seeded, steps)
    assert resumed(lambda: seeded(4), state, epochs=1) == rest[:1]


@pytest.mark.parametrize("before", [1, *more(2)])
def test_a_later_epoch_is_resumed(make, before):
    state, rest, _ = interrupted(lambda: make(shuffle=True), 2, before=before)
    assert resumed(lambda: make(shuffle=True), state)[0] == rest[0]


def test_a_weighted_sampler_with_a_generator_is_fast_forwarded(make):
    def weighted():
        weights = [1.0] * COUNT
        return make(sampler=data.WeightedRandomSampler(weights, 9, generator=torch.Generator().manual_seed(3)))

    state, rest, _ = interrupted(weighted, 2)
    assert resumed(weighted, state) == rest


def test_a_distributed_sampler_is_fast_forwarded(make):
    def distributed():
        sampler = data.DistributedSampler(Numbers(COUNT), 2, 1)
        sampler.set_epoch(4)
        return make(sampler=sampler)

    state, rest, _ = interrupted(distributed, 1)
    assert resumed(distributed, state) == rest


def test_a_list_as_sampler_is_fast_forwarded(make):
    state, rest, _ = interrupted(lambda: make(sampler=[5, 3, 5, 1, 0, 9, 2]), 2)
    assert resumed(lambda: make(sampler=[5, 3, 5, 1, 0, 9, 2]), state) == rest == [[[2]], [[5, 3, 5], [1, 0, 9], [2]]]


def test_a_batch_sampler_is_fast_forwarded(make):
    def batches():
        return make(batch_size=1, batch_sampler=[[1], [2, 3], [4], [5, 6, 7]])

    state, rest, _ = interrupted(batches, 2)
    assert resumed(batches, state) == rest
    assert rest[0] == [[4], [5, 6, 7]]


@pytest.mark.parametrize("steps", [2, *more(0, 1, 4)])
def test_drop_last(make, steps):
    state, rest, _ = interrupted(lambda: make(drop_last=True), steps)
    assert resumed(lambda: make(drop_last=True), state) == rest
    assert len(rest[1]) == 4


@pytest.mark.parametrize("steps", [7, *more(0, 1)])
def test_without_batches(make, steps):
    state, rest, _ = interrupted(lambda: make(batch_size=None), steps)
    assert resumed(lambda: make(batch_size=None), state) == rest
    assert rest[0] == list(range(steps, COUNT))


@pytest.mark.parametrize("steps", [3, *more(0, 1, 4)])  # for the fifth batch it is read to its end and set back
def test_a_sampler_with_a_state_is_set_to_it(make, steps):
    state, rest, _ = interrupted(lambda: make(sampler=Positioned(COUNT)), steps)
    assert resumed(lambda: make(sampler=Positioned(COUNT)), state) == rest


def test_a_sampler_with_a_state_is_not_fast_forwarded(make):
    state, _, _ = interrupted(lambda: make(sampler=Positioned(COUNT)), 3)
    sampler = Positioned(COUNT)
    resumed(lambda: make(sampler=sampler), state, epochs=1)
    assert sampler.given == COUNT - 9


def test_a_sampler_with_a_state_without_batches(make):
    state, rest, _ = interrupted(lambda: make(batch_size=None, sampler=Positioned(COUNT)), 4)
    assert resumed(lambda: make(batch_size=None, sampler=Positioned(COUNT)), state) == rest


def test_a_batch_sampler_with_a_state_is_set_to_it(make):
    def batches():
        return make(batch_size=1, batch_sampler=PositionedBatches(COUNT))

    state, rest, _ = interrupted(batches, 4)
    assert resumed(batches, state) == rest


@pytest.mark.parametrize("steps", [1, 2, *more(0, 5)])
def test_a_dataset_with_a_state_is_set_to_it(make, num_workers, steps):
    """In each worker its own."""

    def tallied():
        return make(Tallied(COUNT))

    state, rest, _ = interrupted(tallied, steps, epochs=1)
    assert resumed(tallied, state, epochs=1) == rest


def test_the_state_is_that_of_the_batch_last_handed_out(make):
    """Not of those that workers have made ahead."""
    loader = make(prefetch_factor=4) if make().num_workers else make()
    iterator = iter(loader)
    for step in range(3):
        rest = resumed(make, stored(loader.state_dict()), epochs=1)[0]
        assert rest == read(make())[step:]
        next(iterator)


def test_a_state_from_before_the_start(make):
    loader = make(shuffle=True)
    state = stored(loader.state_dict())
    whole = read(loader)
    assert sorted(number for batch in whole for number in batch) == list(range(COUNT))
    assert resumed(lambda: make(shuffle=True), state, epochs=1) == [whole]


def test_asking_for_the_state_twice_gives_the_same(make):
    loader = make(shuffle=True)
    iterator = iter(loader)
    take(iterator, 2)
    one, two = stored(loader.state_dict()), stored(loader.state_dict())
    rest = read(iterator)
    for state in (one, two):
        assert resumed(lambda: make(shuffle=True), state, epochs=1) == [rest]


def test_asking_for_the_state_disturbs_nothing(make):
    torch.manual_seed(3)
    expected = read(make(shuffle=True))
    torch.manual_seed(3)
    loader = make(shuffle=True)
    found = []
    for batch in loader:
        loader.state_dict()
        found.append(plain(batch))
    assert found == expected


def test_a_state_does_not_change_later(make):
    loader = make()
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    before = stored(state)
    next(iterator)
    assert resumed(make, state) == resumed(make, before)
    assert state == before


def test_a_state_from_after_the_end_begins_the_next_epoch(make):
    loader = make()
    whole = read(loader)
    assert resumed(make, stored(loader.state_dict())) == [whole, whole]


def test_a_state_from_after_the_last_batch_has_no_rest(make):
    """The loop has not yet learnt that the epoch is over."""
    loader = make()
    iterator = iter(loader)
    take(iterator, 5)
    state = stored(loader.state_dict())
    assert resumed(make, state) == [[], read(make())]


def test_a_state_can_be_loaded_into_the_same_loader(make):
    loader = make()
    iterator = iter(loader)
    take(iterator, 2)
    state = stored(loader.state_dict())
    rest = read(iterator)
    loader.load_state_dict(state)
    assert read(loader) == rest


def test_a_state_loaded_within_an_epoch_counts_from_the_next_iterator(make):
    state, rest, _ = interrupted(make, 3)
    loader = make()
    iterator = iter(loader)
    next(iterator)
    loader.load_state_dict(state)
    assert [read(loader), read(loader)] == rest


def test_of_two_states_the_last_counts(make):
    states = [interrupted(make, steps)[0] for steps in (1, 3)]
    loader = make()
    for state in states:
        loader.load_state_dict(state)
    assert len(read(loader)) == 2


def test_an_empty_state_is_the_beginning(make):
    loader = make()
    loader.load_state_dict({})
    assert len(read(loader)) == 5


def test_a_resumed_epoch_that_is_broken_off_is_not_resumed_again(make):
    state, _, _ = interrupted(make, 3)
    loader = make()
    loader.load_state_dict(state)
    next(iter(loader))
    assert len(read(loader)) == 5


@pytest.mark.parametrize("further", [1, *more(0, 2)])
def test_a_resumed_epoch_can_be_interrupted_again(make, further):
    state, rest, _ = interrupted(lambda: make(shuffle=True), 2)
    torch.manual_seed(77)
    loader = make(shuffle=True)
    loader.load_state_dict(state)
    iterator = iter(loader)
    assert take(iterator, further) == rest[0][:further]
    again = stored(loader.state_dict())
    torch.manual_seed(78)
    assert resumed(lambda: make(shuffle=True), again, epochs=1) == [rest[0][further:]]


def test_a_loaded_state_is_the_state_before_the_first_batch(make):
    state, rest, _ = interrupted(make, 2)
    loader = make()
    loader.load_state_dict(state)
    assert resumed(make, stored(loader.state_dict()), epochs=1) == rest[:1]
    assert read(loader) == rest[0]


def test_the_length_is_that_of_the_whole_epoch(make):
    state, _, _ = interrupted(make, 2)
    loader = make()
    loader.load_state_dict(state)
    assert len(loader) == 5
    read(loader)
    assert len(loader) == 5


def test_a_key_of_others_in_the_state_is_left_alone(make):
    """Accelerate puts one in."""
    state, rest, _ = interrupted(make, 2)
    assert resumed(make, {**state, "_of_others": 1}) == rest


def test_the_state_is_a_plain_dict(make):
    loader = make()
    next(iter(loader))
    assert type(loader.state_dict()) is dict


def test_custom_collation(make):
    state, rest, _ = interrupted(lambda: make(collate_fn=identity), 2)
    assert resumed(lambda: make(collate_fn=identity), state) == rest


@pytest.mark.parametrize("steps", [1, 4])
def test_persistent_workers(stateful_class, steps):
    def make():
        return stateful_class(Numbers(COUNT), 3, shuffle=True, num_workers=2, persistent_workers=True)

    state, rest, generator = interrupted(make, steps, before=1)
    torch.set_rng_state(generator)
    assert resumed(make, state) == rest


@pytest.mark.parametrize("every", [2, *more(1, 4)])
@pytest.mark.parametrize("steps", [3, *more(1, 4)])
def test_a_state_between_snapshots(make, every, steps):
    def sparse():
        return make(Tallied(COUNT), snapshot_every_n_steps=every)

    state, rest, _ = interrupted(sparse, steps, epochs=1)
    assert resumed(sparse, state, epochs=1) == rest


def test_the_seeds_of_workers_are_those_of_the_interrupted_epoch(stateful_class):
    class Seeds(Numbers):
        def __getitem__(self, index):
            return torch.initial_seed()

    def make():
        return stateful_class(Seeds(8), batch_size=None, num_workers=2)

    state, rest, _ = interrupted(make, 3, epochs=1)
    torch.manual_seed(99)
    assert resumed(make, state, epochs=1) == rest
