"""Resume where samples rotate: at every step; with another number of shards only between epochs."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import Inline, Loader, Processes, Rotation, StateError, Threads
from stoker.plan import Cursor, Plan, from_state, to_state
from stoker.testing import assert_resumable
from tests.datasets import Augmented
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(120)


def make(workers=None, **options):
    options = {"batch_size": 4, "shuffle": True, "rotation": Rotation(3, size=5)} | options
    return Loader(Augmented(14), workers=workers or Inline(), **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": None},
        {"shuffle": 6},
        {"drop_last": True},
        {"shard": (1, 2)},
        {"rotation": Rotation(2)},
        {"batch_size": 50},
    ],
    ids=repr,
)
def test_every_step_resumes_inline(options):
    assert_resumable(lambda: make(**options))


@pytest.mark.parametrize("workers", [Threads(3), Processes(2, start="fork"), Processes(2)], ids=repr)
def test_every_step_resumes_with_any_workers(workers):
    assert_resumable(make, resume_with=lambda: make(workers), steps=7)
    assert_resumable(lambda: make(workers), epochs=1, resume_with=make)


@pytest.mark.parametrize(
    "workers", [Threads(3), pytest.param(Processes(2, start="fork"), marks=pytest.mark.exhaustive)], ids=repr
)
def test_every_step_resumes_out_of_order(workers):
    assert_resumable(lambda: make(workers, in_order=False), in_order=False, steps=12)


def test_on_disk_as_in_memory(tmp_path):
    """The medium is no part of the stream, nor of the state."""
    assert_resumable(make, resume_with=lambda: make(rotation=Rotation(3, "disk", 5, tmp_path)), epochs=1)


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_back_and_forth(workers):
    """``set_epoch``, states, and loops that are broken off, again and again: what comes is what the plan says."""
    with make() as oracle:
        wanted = epochs(oracle, 4)
    chance = np.random.default_rng(5)
    with make(workers) as loader:
        states = {}
        for _ in range(30):
            epoch, stop = int(chance.integers(4)), int(chance.integers(1, 11))
            if (epoch, stop) in states and chance.random() < 0.7:
                loader.load_state_dict(states[epoch, stop])
                got = [dict(batch) for batch in itertools.islice(loader, 3)]
                assert_same(got, wanted[epoch][stop : stop + 3])
            else:
                loader.set_epoch(epoch)
                got = [dict(batch) for batch in itertools.islice(loader, stop)]
                assert_same(got, wanted[epoch][:stop])
                states[epoch, stop] = loader.state_dict()


# Shards


def shards(count, state=None, steps=None):
    """Reads so many steps (None: the epoch) with so many shards: the indices, and the state of each."""
    found, states = Counter(), []
    with ExitStack() as stack:
        for shard in range(count):
            loader = stack.enter_context(make(shard=(shard, count)))
            if state:
                loader.load_state_dict(state)
            for batch in itertools.islice(loader, steps):
                found.update(batch["index"].tolist())
            states.append(json.loads(json.dumps(loader.state_dict())))
    assert all(other == states[0] for other in states)
    return found, states[0]


def test_another_number_of_shards_is_refused_within_an_epoch():
    _, state = shards(2, steps=2)
    with make(shard=(0, 3)) as loader:
        with pytest.raises(
            StateError,
            match=r"saved with 2 shards in the middle of an epoch in which samples rotate, and each shard rotates its "
            r"own: resume with 2 shards, or with 3 from the end of an epoch on",
        ):
            loader.load_state_dict(state)
    first, again = shards(2, steps=2)
    second, _ = shards(2, again)
    assert first + second == Counter(dict.fromkeys(range(14), 3))


def test_another_number_of_shards_goes_on_from_the_end_of_an_epoch():
    state = None
    for count in (2, 3, 1, 7):
        found, state = shards(count, state)
        assert set(found) == set(range(14))
        assert set(found.values()) == {3}
    assert state["epoch"] == 4


@settings(max_examples=100)
@given(
    st.integers(1, 60),
    st.one_of(st.none(), st.integers(1, 9)),
    st.integers(2, 4),
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
    st.booleans(),
)
def test_from_n_to_m_shards_at_the_end_of_epochs_each_is_exact(length, size, times, counts, drop_last):
    state, found = None, defaultdict(Counter)
    for epoch, count in enumerate(counts):
        states = []
        for shard in range(count):
            plan = Plan(length, size, True, 3, drop_last, (shard, count), times=times, rotating=4)
            cursor = from_state(state, plan) if state else Cursor()
            if not plan.rounds:
                return
            assert cursor.epoch == epoch
            for batch in list(cursor.remaining(plan)):
                found[epoch].update(plan.indices(batch))
                cursor.deliver(batch, plan)
            states.append(to_state(cursor, plan))
        assert all(other == states[0] for other in states)
        state = states[0]
        dropped = length * times - found[epoch].total()
        assert dropped < count * (size or 1)
        assert drop_last or dropped <= 0


# Other loaders' states


def saved(**options):
    with make(**options) as loader:
        next(iter(loader))
        return loader.state_dict()


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        (None, Rotation(3, size=5), r"saved with rotation=None and this loader has rotation='?Rotation\(3, size=5\)"),
        (Rotation(3, size=5), None, r"saved with rotation='?Rotation\(3, size=5\)'? and this loader has rotation=None"),
        (Rotation(2, size=5), Rotation(3, size=5), r"rotation='?Rotation\(2, size=5\)'? .*to go on, or start afresh"),
        (Rotation(3), Rotation(3, size=5), r"rotation='?Rotation\(3, size=None\)'? and"),
    ],
)
def test_the_state_of_another_rotation_is_refused_in_clear_words(theirs, ours, words):
    state = saved(rotation=theirs)
    with make(rotation=ours) as loader, pytest.raises(StateError, match=words):
        loader.load_state_dict(state)


@pytest.mark.parametrize("position", [1, 2, 3, 41])
def test_a_position_where_no_round_begins_is_refused(position):
    plan = Plan(14, 4, True, times=3, rotating=5)
    with pytest.raises(StateError, match=f"its position is {position}, where no round of 42 samples begins"):
        from_state(to_state(Cursor(0, position), plan), plan)
