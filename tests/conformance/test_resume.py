"""Resume at every step, on every backend: the stream goes on with the next undelivered batch."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from stoker import Inline, Loader, Processes, StateError, Threads
from tests.datasets import Augmented, Rows
from tests.streams import assert_same, epochs, kept

OTHER = {
    "Inline()": Processes(2),
    "Threads(n=1)": Inline(),
    "Threads(n=4)": Processes(1),
    "Processes(n=1, start='nursery')": Threads(3),
    "Processes(n=3, start='nursery')": Processes(2),
    "Processes(n=2, start='fork')": Processes(3),
    "Processes(n=2, start='spawn')": Inline(),
}


def take(loader, count):
    """The next so many batches, over the borders of epochs."""
    got = []
    while len(got) < count:
        for batch in loader:
            got.append(kept(batch))
            if len(got) == count:
                break
    return got


def through_json(state):
    return json.loads(json.dumps(state))


def make(workers, **options):
    return Loader(Augmented(22), 5, workers=workers, seed=9, **options)


@pytest.mark.parametrize("shuffle", [False, True, 6])
def test_resume_at_every_step_on_another_backend(backend, shuffle):
    """Contract: after load_state_dict the stream goes on with the next undelivered batch; twice in a row."""
    with make(Inline(), shuffle=shuffle) as loader:
        stream = [batch for epoch in epochs(loader, 3) for batch in epoch]
    states = []
    with make(backend, shuffle=shuffle) as loader:
        states.append(through_json(loader.state_dict()))
        for _ in range(2):
            for _ in loader:
                states.append(through_json(loader.state_dict()))
    with make(OTHER.get(repr(backend), Processes(2)), shuffle=shuffle) as loader:
        for step, state in enumerate(states):
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            assert_same(take(loader, 3), stream[step : step + 3])
            again = through_json(loader.state_dict())
            loader.load_state_dict(again)
            assert_same(take(loader, 2), stream[step + 3 : step + 5])


def test_resume_out_of_order_repeats_nothing_and_loses_nothing(backend):
    for stop in (0, 1, 4, 7, 8):
        with Loader(Rows(40), 5, workers=backend, in_order=False, shuffle=True) as loader:
            before = [kept(batch) for batch, _ in zip(loader, range(stop), strict=False)]
            # zip has taken one more batch than it kept
            state = through_json(loader.state_dict())
            taken = len(before) + (stop < 8)
        with Loader(Rows(40), 5, workers=Processes(2), in_order=False, shuffle=True) as loader:
            loader.load_state_dict(state)
            rest = 8 - taken if taken < 8 else 8
            after = [kept(batch) for batch in loader]
        assert len(after) == rest


def test_out_of_order_the_rest_is_what_was_not_taken():
    with Loader(Rows(40), 5, workers=Threads(4), in_order=False) as loader:
        iterator = iter(loader)
        before = [int(next(iterator)[0, 0]) for _ in range(3)]
        state = through_json(loader.state_dict())
    with Loader(Rows(40), 5, workers=Inline(), in_order=False) as loader:
        loader.load_state_dict(state)
        after = [int(batch[0, 0]) for batch in loader]
    assert Counter(before + after) == Counter(range(0, 40, 5))


def test_at_the_very_end_of_an_epoch_the_next_one_follows(backend):
    with make(backend) as loader:
        for _ in loader:
            state = loader.state_dict()
        assert state == loader.state_dict()
        assert loader.epoch == 1
    with make(backend) as loader, make(Inline()) as oracle:
        loader.load_state_dict(state)
        assert loader.epoch == 1
        assert_same(epochs(loader, 1), epochs(oracle, 2)[1:])


def test_set_epoch_after_a_resume_keeps_the_place():
    """for epoch in range(loader.epoch, n): loader.set_epoch(epoch) is what people write."""
    with make(Threads(2)) as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        rest = [kept(batch) for batch in iterator]
    with make(Threads(2)) as loader:
        loader.load_state_dict(state)
        loader.set_epoch(0)
        assert_same(epochs(loader, 1)[0], rest)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (2, 1), (3, 2), (4, 4)])
def test_resume_with_another_shard_count_at_a_step_boundary(before, after):
    """Contract: the union over shards is the same for any count, and a run may resume with another one."""

    def shards(count, state=None):
        loaders = [Loader(Rows(100), 4, shuffle=True, shard=(k, count), workers=Threads(1)) for k in range(count)]
        for loader in loaders:
            if state:
                loader.load_state_dict(state)
        return loaders

    seen = []
    first = shards(before)
    iterators = [iter(loader) for loader in first]
    for _ in range(2):
        for iterator in iterators:
            seen.extend(next(iterator)[:, 0].tolist())
    state = through_json(first[0].state_dict())
    second = shards(after, state)
    counts = []
    for loader in second:
        batches = [batch[:, 0].tolist() for batch in loader]
        counts.append(len(batches))
        seen.extend(index for batch in batches for index in batch)
    assert Counter(seen) == Counter(range(100))
    assert len(set(counts)) == 1
    for loader in first + second:
        loader.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dataset": Rows(99)}, "length"),
        ({"batch_size": 6}, "batch_size"),
        ({"seed": 1}, "seed"),
        ({"shuffle": True}, "shuffle"),
        ({"drop_last": True}, "drop_last"),
    ],
)
def test_a_state_of_another_plan_is_a_clear_error(options, words):
    with Loader(Rows(100), 5) as loader:
        next(iter(loader))
        state = loader.state_dict()
    other = {"dataset": Rows(100), "batch_size": 5} | options
    with Loader(other.pop("dataset"), **other) as loader, pytest.raises(StateError, match=words):
        loader.load_state_dict(state)


def test_a_factorys_length_is_part_of_its_state():
    with Loader(Rows, 10, workers=Processes(1)) as loader:
        assert loader.state_dict()["plan"]["length"] == 100
