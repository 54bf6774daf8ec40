"""Resume any way one can: from n shards to m to k, out of order, at the end of an epoch, and from a broken state."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter, defaultdict
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import Inline, Loader, Processes, StateError, Threads
from stoker.plan import Cursor, Plan, from_state, to_state
from tests.datasets import Rows

SHUFFLES = [False, True, 7]


def through_json(state):
    return json.loads(json.dumps(state))


# The plan and the cursor


def leg(plans, state, steps, delivered, repeats):
    """Every shard takes ``steps`` batches, over the borders of epochs: the state that all of them would save."""
    states = []
    for plan in plans:
        cursor = from_state(state, plan) if state else Cursor()
        for _ in range(steps):
            batch = next(cursor.remaining(plan), None)
            if batch is None:
                break  # with drop_last there may be no round at all
            delivered[cursor.epoch].extend(plan.indices(batch))
            # The documented exception: in a last round of fewer samples than shards, some samples repeat.
            repeats[cursor.epoch] = max(0, len(plans) - (plan.length - batch.position))
            cursor.deliver(batch, plan)
            if cursor.at_end(plan):
                cursor.next_epoch()
        states.append(through_json(to_state(cursor, plan)))
    assert all(other == states[0] for other in states), "shards at the same step save the same state"
    return states[0]


def order(length, shuffle, epoch):
    whole = Plan(length, length, shuffle, 3)
    return list(whole.indices(whole.batch(epoch, 0)))


@settings(max_examples=150, deadline=None)
@given(
    length=st.integers(1, 300),
    size=st.one_of(st.none(), st.integers(1, 9)),
    shuffle=st.sampled_from(SHUFFLES),
    counts=st.lists(st.integers(1, 64), min_size=3, max_size=3),
    steps=st.tuples(st.integers(0, 8), st.integers(0, 8)),
)
def test_from_n_to_m_to_k_shards_each_epoch_is_delivered_exactly_once(length, size, shuffle, counts, steps):
    delivered, repeats, state = defaultdict(list), {}, None
    for count, stop in zip(counts, (*steps, None), strict=True):
        plans = [Plan(length, size, shuffle, 3, shard=(k, count)) for k in range(count)]
        if stop is None:  # the last leg goes on to the end of its epoch
            stop = len(list(from_state(state, plans[0]).remaining(plans[0])))
        state = leg(plans, state, stop, delivered, repeats)
    assert state["epoch"] == len(delivered)
    for epoch, found in delivered.items():
        once = order(length, shuffle, epoch)[: length - max(counts) + 1] if length >= max(counts) else []
        assert sorted(set(found)) == list(range(length))
        assert len(found) == length + repeats[epoch]
        assert all(Counter(found)[index] == 1 for index in once)


@settings(max_examples=150, deadline=None)
@given(
    length=st.integers(1, 300),
    size=st.integers(1, 9),
    shuffle=st.sampled_from(SHUFFLES),
    counts=st.lists(st.integers(1, 64), min_size=3, max_size=3),
    steps=st.lists(st.integers(0, 8), min_size=3, max_size=3),
)
def test_with_drop_last_nothing_repeats_and_less_than_a_round_is_left_out(length, size, shuffle, counts, steps):
    delivered, repeats, state = defaultdict(list), {}, None
    for count, stop in zip(counts, steps, strict=True):
        plans = [Plan(length, size, shuffle, 3, drop_last=True, shard=(k, count)) for k in range(count)]
        state = leg(plans, state, stop, delivered, repeats)
    for epoch, found in delivered.items():
        assert Counter(found) == Counter(order(length, shuffle, epoch)[: len(found)])
        assert epoch >= state["epoch"] or length - len(found) < size * max(counts)


# For real


class Uneven(Rows):
    """Every third batch of 4 takes longer, so that the others overtake it."""

    def __getitem__(self, index):
        if index % 12 == 0:
            time.sleep(0.003)
        return super().__getitem__(index)


def indices(batches):
    return [int(index) for batch in batches for index in batch[:, 0]]


@pytest.mark.parametrize(
    ("shuffle", "backends"),
    [
        (False, (Threads(1), Processes(1), Inline())),
        (True, (Processes(2, start="fork"), Inline(), Threads(2))),
        (True, (Inline(), Processes(1, start="spawn"), Processes(1))),
        (7, (Processes(1), Threads(2), Processes(2, start="fork"))),
    ],
    ids=repr,
)
def test_three_shards_then_two_then_five(shuffle, backends):
    """A job that loses a machine and later gets more: the epoch comes exactly once, and all end at the same step."""
    seen, state = [], None
    for count, steps, workers in zip((3, 2, 5), (2, 3, None), backends, strict=True):
        with ExitStack() as stack:
            lengths, states = [], []
            for shard in range(count):
                loader = Loader(Rows(103), 4, shuffle=shuffle, seed=5, shard=(shard, count), workers=workers)
                stack.enter_context(loader)
                if state:
                    loader.load_state_dict(state)
                share = indices(itertools.islice(loader, steps))
                lengths.append(len(share))
                seen += share
                states.append(through_json(loader.state_dict()))
        assert all(other == states[0] for other in states)
        assert max(lengths) - min(lengths) <= 1
        state = states[0]
    assert Counter(seen) == Counter(range(103))
    assert (state["epoch"], state["position"]) == (1, 0)


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("first", [Threads(3), Processes(3), Processes(2, start="fork")], ids=repr)
def test_out_of_order_every_step_resumes_twice_in_a_row(first, shuffle):
    """As multisets, nothing is lost or repeated, wherever the first and the second run stop."""

    def loader(workers):
        return Loader(Uneven(46), 4, shuffle=shuffle, workers=workers, in_order=False)

    with loader(first) as one, loader(Threads(2)) as two, loader(Processes(2)) as three:
        taken, saved = [], [([], one.state_dict())]
        for batch in one:
            taken += indices([batch])
            saved.append((list(taken), through_json(one.state_dict())))
        assert len(saved) == 13
        for before, state in saved:
            if state["epoch"]:  # at the very end: the next epoch, whole
                before = []
            two.load_state_dict(state)
            between = indices(itertools.islice(two, 3))
            later = through_json(two.state_dict())
            three.load_state_dict(later)
            after = [] if later["epoch"] > state["epoch"] else indices(three)
            assert Counter(before + between + after) == Counter(range(46))
        assert saved[-1][1]["epoch"] == 1


# Broken states


def edited(**changes):
    return lambda state: {**state, **changes}


def without(key):
    return lambda state: {name: value for name, value in state.items() if name != key}


def of(cursor=None, **options):
    """The sound state of another plan."""
    plan = {"length": 100, "batch_size": 5, "shuffle": True, "seed": 3} | options
    return lambda _: to_state(cursor or Cursor(0, 15), Plan(**plan))


BROKEN = {
    "a missing key": (without("position"), r"lacks position.*as it was saved"),
    "no check": (without("check"), r"lacks check.*as it was saved"),
    "an edited position": (edited(position=20), r"its check is \d+ but .*as it was saved, not edited"),
    "a position of another type": (edited(position="15"), r"position is '15', not a count.*as it was saved"),
    "an edited epoch": (edited(epoch=7), r"its check is .*as it was saved"),
    "a wrong check": (edited(check=1), r"its check is 1 but .*as it was saved"),
    "a key too much": (edited(optimizer={}), r"unknown keys: 'optimizer'.*as it was saved"),
    "another seed": (of(seed=4), r"saved with seed=4.*make the loader with seed=4 to go on, or start afresh"),
    "another length": (of(length=99), r"saved with length=99.*start afresh"),
    "another batch size": (of(batch_size=4, cursor=Cursor(0, 16)), r"make the loader with batch_size=4"),
    "a newer format": (edited(stoker_state=3), r"format 3.*load it with the version of Stoker that wrote it"),
    "JSON cut short": (lambda state: json.dumps(state)[:-9], r"a str: pass the dict that state_dict\(\) gave"),
    "JSON not parsed": (json.dumps, r"a str: pass the dict"),
    "a list": (lambda state: [state], r"a list: pass the dict"),
    "nothing": (lambda _: None, r"a NoneType: pass the dict"),
    "an empty dict": (lambda _: {}, r"lacks check, epoch.*as it was saved"),
    "another library's": (lambda _: {"_num_yielded": 3, "_sampler_iter_state": None}, r"lacks .*as it was saved"),
    "not at a step boundary": (of(Cursor(0, 0, {15}), shard=(0, 3)), r"3 shards, not at a step.*resume with 3 shards"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_state_says_what_to_do_and_the_loader_goes_on_from_where_it_was(name):
    breaking, words = BROKEN[name]
    with Loader(Rows(100), 5, shuffle=True, seed=3, workers=Threads(2)) as loader:
        wanted = [indices([batch]) for batch in loader]
        loader.set_epoch(0)
        iterator = iter(loader)
        got = [indices([next(iterator)]) for _ in range(3)]
        sound = loader.state_dict()
        with pytest.raises(StateError, match=f"(?s){words}"):
            loader.load_state_dict(breaking(sound))
        assert loader.state_dict() == sound
        assert got + [indices([batch]) for batch in iterator] == wanted
