"""Packed rows resume at any batch, and states of others are refused."""

from __future__ import annotations

import functools
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from stoker.testing import assert_resumable, assert_same
from tests.packing.documents import Documents, Failing, loader


def rows_of(batches) -> Counter[bytes]:
    return Counter(row.tobytes() for batch in batches for row in batch["tokens"])


def test_a_run_resumes_at_any_batch():
    assert_resumable(loader)


@pytest.mark.parametrize(
    "options", [{"batch_size": 7, "drop_last": True}, {"batch_size": None}, {"shard": (1, 3), "even_shards": False}]
)
def test_a_run_resumes_at_any_batch_however_batches_are_cut(options):
    assert_resumable(functools.partial(loader, Documents(60), **options), epochs=1)


def test_a_run_resumes_with_other_workers():
    assert_resumable(loader, epochs=1, resume_with=functools.partial(loader, workers=stoker.Threads(3)))


def test_out_of_order_each_row_comes_once_whenever_the_run_was_resumed():
    """Which loose rows share a batch depends on which window came first, so it is rows that are compared."""
    make = functools.partial(loader, workers=stoker.Threads(2), in_order=False)
    with loader() as plain:
        expected = rows_of(plain)
    taken, saved = [], []
    with make() as packed:
        for batch in packed:
            taken.append(rows_of([batch]))
            saved.append(json.loads(json.dumps(packed.state_dict())))
    assert sum(taken, Counter()) == expected
    for step, state in enumerate(saved[:-1], 1):
        with make() as resumed:
            resumed.load_state_dict(state)
            assert sum(taken[:step], Counter()) + rows_of(resumed) == expected


def test_a_run_resumes_in_processes():
    assert_resumable(loader, epochs=1, resume_with=functools.partial(loader, workers=stoker.Processes(2)), steps=3)


def test_a_run_that_leaves_samples_out_resumes_and_counts_each_once(caplog):
    make = functools.partial(loader, Failing(), on_error="skip", max_errors=10)
    assert_resumable(make, epochs=1)
    with make() as packed:
        for _ in packed:
            state = json.loads(json.dumps(packed.state_dict()))
    assert state["epoch"] == 1
    with pytest.raises(stoker.TooManyErrors, match="10 of 100 samples of epoch 0 failed; 9 may"):
        list(loader(Failing(), on_error="skip", max_errors=9))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pack": stoker.Pack(25, window=16)}, "pack_length=24 and this loader has pack_length=25"),
        ({"pack": stoker.Pack(24, window=17)}, "pack_window=16"),
        ({"pack": stoker.Pack(24, window=16, long="drop")}, "pack_long='split'"),
        ({"batch_size": 5}, "batch_size=4"),
        ({"shuffle": False}, "shuffle=True"),
        ({"seed": 1}, "seed=0"),
        ({"dataset": Documents(99)}, "length=100"),
        ({"shard": (0, 2), "even_shards": False}, "even_shards=True"),
        ({"pack": None, "collate": stoker.pad}, "damaged|not one of"),
    ],
)
def test_a_state_of_another_loader_is_refused(options, message):
    with loader() as packed:
        next(iter(packed))
        state = packed.state_dict()
    with pytest.raises(stoker.StateError, match=message):
        loader(**options).load_state_dict(state)


def test_a_state_of_the_middle_of_an_epoch_is_of_one_shard_and_one_between_epochs_is_of_any():
    make = functools.partial(loader, even_shards=False)
    with make(shard=(0, 2)) as packed:
        next(iter(packed))
        middle = packed.state_dict()
        packed.set_epoch(3)
        between = packed.state_dict()
    with pytest.raises(stoker.StateError, match=r"by shard \(0, 2\) and this is \(1, 2\)"):
        make(shard=(1, 2)).load_state_dict(middle)
    with make(shard=(1, 3)) as other, make(shard=(1, 3)) as plain:
        other.load_state_dict(between)
        plain.set_epoch(3)
        assert_same(list(other), list(plain))


def test_a_state_of_a_loader_that_does_not_pack_is_refused():
    with stoker.Loader(Documents(), 4, collate=stoker.pad) as plain:
        state = plain.state_dict()
    with pytest.raises(stoker.StateError, match="not one of a loader with pack="):
        loader().load_state_dict(state)


junk = (
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=3) | st.lists(st.integers(-1, 9), max_size=3)
)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_state_is_a_state_error_and_nothing_else(data):
    state = state_within()
    key = data.draw(st.sampled_from(sorted(state)))
    damaged = data.draw(junk.filter(lambda value: type(value) is not type(state[key]) or value != state[key]))
    with pytest.raises(stoker.StateError):
        loader().load_state_dict({**state, key: damaged})


@functools.lru_cache
def state_within():
    with loader() as packed:
        batches = iter(packed)
        for _ in range(3):
            next(batches)
        return packed.state_dict()
