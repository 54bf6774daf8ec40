"""States that somebody has changed, with the check put right: each is a place of the epoch, or a StateError."""

from __future__ import annotations

import contextlib
import copy
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import Chunks, Loader, StateError, Threads
from stoker.plan import check_sum
from tests.chunks.files import flat, numbers, write_chunks

SIZES = [3, 5, 2, 6, 9]
TOTAL = sum(SIZES)
CASES = {
    "in order": {},
    "shuffled": {"shuffle": True, "drop_last": True},
    "as they come": {"shuffle": True, "in_order": False, "workers": Threads(2)},
    "a shard": {"shard": (1, 2)},
    "each file by itself": {"across_chunks": False},
}


def deep(levels: int = 100_000):
    found: list = []
    for _ in range(levels):
        found = [found]
    return found


def make(folder, options):
    options = dict(options)
    chunks = Chunks(folder, interleave=1, across_chunks=options.pop("across_chunks", True))
    return Loader(chunks, 4, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    write_chunks(folder, SIZES)
    return folder


@pytest.fixture(scope="module")
def states(folder):
    """Of each case, after each batch."""
    found = {}
    for case, options in CASES.items():
        with make(folder, options) as loader:
            found[case] = [loader.state_dict()]
            found[case] += [loader.state_dict() for _ in loader]
    return json.loads(json.dumps(found))


numbers_alike: list = [
    -1,
    0,
    1,
    2,
    5,
    6,
    25,
    2**31,
    2**63 - 1,
    2**63,
    10**5000,
    -(10**5000),
    1.0,
    float("nan"),
    True,
    "1",
    b"1",
]
lists_alike = [[], [[]], [0], [1, 1], [5, 4], [0, 2], [[0, 0]], [[0, 0], [0, 0]], [[1, 2, 3]], [["0", 0]], [[True, 0]]]
odd = st.one_of(
    st.sampled_from([None, {}, {1: 2}, object(), "deep", *numbers_alike, *lists_alike]),
    st.lists(st.integers(-1, 7) | st.tuples(st.integers(-1, 7), st.integers(-1, 9)).map(list), max_size=4),
)


def changed(state: dict, path: list[int], value) -> dict:
    """With that value somewhere in it, and the check put right where that is possible."""
    state = copy.deepcopy(state)
    at, keys = state, sorted(state)
    for step in path[:-1]:
        keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[step % len(keys)] if keys else None
        if not isinstance(key, str | int) or not isinstance(at[key], dict | list) or not at[key]:
            break
        at = at[key]
    keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
    key = keys[path[-1] % len(keys)]
    at[key] = deep() if value == "deep" else value
    if key != "check":
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            state["check"] = check_sum(state)
    return state


@given(
    case=st.sampled_from(list(CASES)), nth=st.integers(0, 6), path=st.lists(st.integers(0, 20), min_size=1), value=odd
)
@settings(max_examples=300, deadline=None)
def test_a_changed_one_is_a_place_of_the_epoch_or_refused(folder, states, case, nth, path, value):
    state = changed(states[case][nth % len(states[case])], path, value)
    with make(folder, CASES[case]) as loader:
        try:
            loader.load_state_dict(state)
            epoch = loader.epoch
            again = loader.state_dict()
            got = flat([numbers(batch) for batch in loader])
        except StateError:
            return
        assert loader.epoch == epoch + 1
        assert Counter(got) <= Counter(range(TOTAL)), "a sample came twice, or is none"
        loader.load_state_dict(again)
        assert Counter(flat([numbers(batch) for batch in loader])) == Counter(got)


FIELDS = [
    "stoker_chunks",
    "plan",
    "files",
    "parts",
    "shard",
    "epoch",
    "place",
    "taken",
    "partly",
    "waiting",
    "left_out",
    "check",
]


@pytest.mark.parametrize("field", FIELDS)
def test_no_value_of_another_kind_is_accepted_or_comes_out_as_another_error(folder, states, field):
    others = [None, 1.5, "x", b"x", deep(), {}, object()]
    values = [*others, True, -1, 2**63, 10**5000, [-1], [None], [[1]], [[1, -1]], [[9, 0]]]
    for state in states["in order"]:
        for value in values:
            for damaged in (state | {field: value}, {key: item for key, item in state.items() if key != field}):
                try:
                    damaged["check"] = damaged["check"] if field == "check" else check_sum(damaged)
                except (TypeError, ValueError, RecursionError):
                    pass
                except KeyError:
                    damaged["check"] = 0
                with make(folder, {}) as loader, pytest.raises(StateError):
                    loader.load_state_dict(damaged)


@pytest.mark.parametrize(
    "name", ["version", "batch_size", "shuffle", "seed", "drop_last", "interleave", "across_chunks"]
)
def test_nor_in_the_plan(folder, states, name):
    state = states["in order"][2]
    for value in (None, deep(), [1], {}, 1.0, 10**5000, int(state["plan"][name]) if name != "seed" else False):
        if type(value) is type(state["plan"][name]) and value == state["plan"][name]:
            continue
        damaged = state | {"plan": state["plan"] | {name: value}}
        with contextlib.suppress(ValueError, RecursionError):
            damaged["check"] = check_sum(damaged)
        with make(folder, {}) as loader, pytest.raises(StateError):
            loader.load_state_dict(damaged)


def test_a_refused_one_changes_nothing(folder, states):
    with make(folder, {}) as loader:
        loader.load_state_dict(states["in order"][2])
        with pytest.raises(StateError):
            loader.load_state_dict(states["in order"][3] | {"place": 99})
        assert loader.state_dict() == states["in order"][2]


@pytest.mark.parametrize("seed", [2**64 - 1, -5, 2**200])
def test_any_seed_is_written_down_and_read_back(folder, seed):
    with Loader(Chunks(folder), 4, shuffle=True, seed=seed) as loader:
        next(iter(loader))
        loader.load_state_dict(json.loads(json.dumps(loader.state_dict())))
