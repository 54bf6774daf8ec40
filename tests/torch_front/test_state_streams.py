"""State of loaders over iterable datasets: as torchdata's StatefulDataLoader has it."""

from __future__ import annotations

import pytest

from tests.torch_front.datasets import Split, Stream, Uneven
from tests.torch_front.resuming import (
    Both,
    ByIterator,
    Resumable,
    UnevenByIterator,
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

KINDS = {
    "without state": lambda: Split(20),
    "state of the dataset": lambda: Resumable(20),
    "state of the iterator": lambda: ByIterator(20),
    "state of both": lambda: Both(20),
}


@pytest.fixture
def make(stateful_class, num_workers):
    def make(dataset, **arguments):
        return stateful_class(dataset, **{"batch_size": 3, "num_workers": num_workers, **arguments})

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [2, *more(0, 1, 5, 6)])
def test_the_rest_of_the_epoch_follows(make, kind, steps):
    state, rest, _ = interrupted(lambda: make(KINDS[kind]()), steps, epochs=1)
    assert resumed(lambda: make(KINDS[kind]()), state, epochs=1) == rest


@pytest.mark.parametrize("kind", ["without state", "state of the dataset", "state of the iterator"])
def test_the_next_epochs_are_whole(make, kind):
    state, rest, _ = interrupted(lambda: make(KINDS[kind]()), 2, epochs=3)
    assert resumed(lambda: make(KINDS[kind]()), state, epochs=3) == rest
    assert rest[1] == read(make(KINDS[kind]()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [6, *more(1)])
def test_without_batches(make, kind, steps):
    state, rest, _ = interrupted(lambda: make(KINDS[kind](), batch_size=None), steps, epochs=1)
    assert resumed(lambda: make(KINDS[kind](), batch_size=None), state, epochs=1) == rest


@pytest.mark.parametrize("kind", ["without state", "state of the dataset", "state of the iterator"])
@pytest.mark.parametrize("steps", [4, *more(1)])
def test_drop_last(make, kind, steps):
    state, rest, _ = interrupted(lambda: make(KINDS[kind](), drop_last=True), steps)
    assert resumed(lambda: make(KINDS[kind](), drop_last=True), state) == rest


@pytest.mark.parametrize("kind", ["without state", "state of the dataset", "state of the iterator"])
def test_a_state_from_after_the_end_begins_the_next_epoch(make, kind):
    loader = make(KINDS[kind]())
    whole = read(loader)
    state = stored(loader.state_dict())
    assert resumed(lambda: make(KINDS[kind]()), state) == [whole, whole]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_from_before_the_start(make, kind):
    loader = make(KINDS[kind]())
    state = stored(loader.state_dict())
    whole = read(loader)
    assert resumed(lambda: make(KINDS[kind]()), state, epochs=1) == [whole]


@pytest.mark.parametrize("kind", KINDS)
def test_asking_for_the_state_disturbs_nothing(make, kind):
    loader = make(KINDS[kind]())
    found = []
    for batch in loader:
        loader.state_dict()
        found.append(plain(batch))
    assert found == read(make(KINDS[kind]()))


@pytest.mark.parametrize("kind", KINDS)
def test_asking_twice_gives_the_same(make, kind):
    loader = make(KINDS[kind]())
    iterator = iter(loader)
    take(iterator, 3)
    one, two = stored(loader.state_dict()), stored(loader.state_dict())
    rest = [read(iterator)]
    assert resumed(lambda: make(KINDS[kind]()), one, epochs=1) == rest
    assert resumed(lambda: make(KINDS[kind]()), two, epochs=1) == rest


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "without state"])  # torchdata counts that double
def test_a_resumed_epoch_can_be_interrupted_again(make, kind):
    state, rest, _ = interrupted(lambda: make(KINDS[kind]()), 2, epochs=1)
    loader = make(KINDS[kind]())
    loader.load_state_dict(state)
    iterator = iter(loader)
    assert take(iterator, 2) == rest[0][:2]
    again = stored(loader.state_dict())
    assert resumed(lambda: make(KINDS[kind]()), again, epochs=1) == [rest[0][2:]]


def test_a_dataset_with_a_state_is_not_fast_forwarded(make, num_workers):
    if num_workers:
        pytest.skip("the copies of workers cannot be asked")
    state, _, _ = interrupted(lambda: make(Resumable(20)), 5)
    dataset = Resumable(20)
    resumed(lambda: make(dataset), state, epochs=1)
    assert dataset.given == 5


@pytest.mark.parametrize("steps", [1, 3, 6, *more(2, 4, 5, 7, 8)])
def test_workers_that_ended_before_others_stay_ended(stateful_class, steps):
    def make():
        return stateful_class(UnevenByIterator(), batch_size=None, num_workers=2)

    state, rest, _ = interrupted(make, steps, epochs=1)
    assert resumed(make, state, epochs=1) == rest


@pytest.mark.parametrize("steps", [3, 6, *more(1, 4)])
def test_uneven_streams_without_a_state(stateful_class, steps):
    def make():
        return stateful_class(Uneven(2, 6), batch_size=None, num_workers=2)

    state, rest, _ = interrupted(make, steps, epochs=1)
    assert resumed(make, state, epochs=1) == rest


@pytest.mark.parametrize("kind", ["without state", "state of the dataset", "state of the iterator"])
def test_persistent_workers(stateful_class, kind):
    def make():
        return stateful_class(KINDS[kind](), 3, num_workers=2, persistent_workers=True)

    state, rest, _ = interrupted(make, 2, before=1)
    assert resumed(make, state) == rest


@pytest.mark.parametrize("every", [3, *more(2)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_between_snapshots(make, kind, every):
    def sparse():
        return make(KINDS[kind](), snapshot_every_n_steps=every)

    state, rest, _ = interrupted(sparse, 4, epochs=1)
    assert resumed(sparse, state, epochs=1) == rest


def test_a_stream_that_each_worker_repeats(make):
    state, rest, _ = interrupted(lambda: make(Stream(7)), 3)
    assert resumed(lambda: make(Stream(7)), state) == rest


def test_the_length_that_was_asked_for_is_remembered(stateful_class):
    class Sized(ByIterator):
        def __len__(self):
            return 2

    loader = stateful_class(Sized(6), batch_size=None)
    assert len(loader) == 2
    iterator = iter(loader)
    take(iterator, 2)
    state = stored(loader.state_dict())
    fresh = stateful_class(Sized(6), batch_size=None)
    fresh.load_state_dict(state)
    with pytest.warns(UserWarning, match="reported to be 2"):
        assert read(fresh) == [2, 3, 4, 5]


def test_a_random_stream_with_its_generator_in_the_state(make):
    class Random(data.IterableDataset):
        def __init__(self):
            self.generator = torch.Generator().manual_seed(4)

        def __iter__(self):
            for _ in range(8):
                yield int(torch.randint(1000, (), generator=self.generator))

        def state_dict(self):
            return {"generator": self.generator.get_state()}

        def load_state_dict(self, state):
            self.generator.set_state(state["generator"])

    state, rest, _ = interrupted(lambda: make(Random(), batch_size=2), 2, epochs=1)
    found = resumed(lambda: make(Random(), batch_size=2), state, epochs=1)
    assert found[0][: len(rest[0])] == rest[0]
