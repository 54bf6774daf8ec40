"""Packing a mixture: weights, ends and states are as without packing; what goes by batches is refused."""

from __future__ import annotations

import functools
import json
from collections import Counter
from itertools import islice

import numpy as np
import pytest

import stoker
from stoker import Inline, Mix, Processes, StateError, Threads
from stoker.testing import assert_deterministic, assert_resumable, assert_same
from tests.packing.documents import Documents, Failing, all_tokens, check_segments, loader, tokens_of
from tests.streams import kept

WEB, CODE = Documents(100), Documents(40, seed=1)
ONLY_WEB, ONLY_CODE, BOTH = {"web": 1, "code": 0}, {"web": 0, "code": 1}, {"web": 0.75, "code": 0.25}


class Shifted:
    """A dataset whose tokens are those of a second source."""

    def __init__(self, documents):
        self.documents = documents

    def __len__(self):
        return len(self.documents)

    def __getitem__(self, index):
        return self.documents[index] + 1_000_000


def make(weights=BOTH, *, sources=None, **options):
    kinds = {name: options.pop(name) for name in ("by", "ends", "length", "tag") if name in options}
    mix = Mix(sources or {"web": WEB, "code": Shifted(CODE)}, weights, **({"length": 100} | kinds))
    return loader(mix, **options)


def endless(weights=BOTH, **options):
    return make(weights, ends="never", length=None, **options)


def through_json(state):
    return json.loads(json.dumps(state))


def take(packed, count):
    return [kept(batch) for batch in islice(iter(packed), count)]


def has_code(batch):
    return bool((batch["tokens"] >= 1_000_000).any())


@pytest.mark.parametrize("shuffle", [False, True, 7])
@pytest.mark.parametrize("by", ["quota", "chance"])
def test_each_sample_of_the_mixture_is_packed_as_often_as_it_comes(shuffle, by):
    mix = Mix({"web": WEB, "code": Shifted(CODE)}, BOTH, length=100, by=by)
    with stoker.Loader(mix, 100, shuffle=shuffle, collate=list) as plain, loader(mix, shuffle=shuffle) as packed:
        for _ in range(3):
            expected = Counter(token for batch in plain for sample in batch for token in sample.tolist())
            batches = list(packed)
            assert tokens_of(batches) == expected


@pytest.mark.parametrize("workers", [Inline(), Threads(2)])
def test_a_mix_that_never_ends_goes_on_where_the_last_loop_was_left(workers):
    with endless() as packed:
        whole = take(packed, 12)
    with endless(workers=workers) as packed:
        assert_same([*take(packed, 5), *take(packed, 1), *take(packed, 6)], whole)
        assert packed.epoch == 0


def test_a_mix_that_never_ends_has_no_length():
    with endless() as packed, stoker.Loader(Mix([WEB], ends="never"), 4) as plain:
        for each in (packed, plain):
            with pytest.raises(TypeError, match=r"its Mix has ends='never'. For epochs, pass length=n"):
                len(each)


def test_a_mix_that_never_ends_resumes_at_any_batch():
    with endless() as packed:
        states, whole = [], []
        for batch in islice(iter(packed), 20):
            whole.append(kept(batch))
            states.append(through_json(packed.state_dict()))
    for step, state in enumerate(states[:15], 1):
        with endless() as packed:
            packed.load_state_dict(state)
            assert through_json(packed.state_dict()) == state
            assert_same(take(packed, 5), whole[step : step + 5])


@pytest.mark.parametrize("by", [pytest.param("quota", marks=pytest.mark.exhaustive), "chance"])
def test_the_stream_is_the_same_on_any_backend_and_resumes_at_any_batch(by):
    new = functools.partial(make, by=by)
    assert_deterministic(new, functools.partial(new, workers=Processes(2)))
    assert_resumable(new, resume_with=functools.partial(new, workers=Threads(2)))


def test_shards_share_out_the_mixture():
    found = Counter()
    for shard in range(3):
        with make(shard=(shard, 3), even_shards=False) as packed:
            found += tokens_of(list(packed))
    with make() as packed:
        assert found == tokens_of(list(packed))


# States


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": ONLY_WEB}, r"whose weights are .*call loader\.set_weights"),
        ({"length": 50}, "whose ends are 100"),
        ({"by": "chance"}, "by='quota'"),
        ({"sources": {"web": WEB, "code": Documents(41)}}, "40 samples in the source 'code', which has 41 now"),
        ({"sources": {"web": WEB}, "weights": [1]}, "in the middle of an epoch of the sources web, code"),
        ({"sources": {"web": WEB, "books": CODE}, "weights": [3, 1]}, "this Mix has web, books"),
    ],
)
def test_a_state_of_another_mixture_is_refused(options, message):
    with make() as packed:
        take(packed, 3)
        state = packed.state_dict()
    with make(**options) as packed, pytest.raises(StateError, match=message):
        packed.load_state_dict(state)


def test_a_state_of_a_mixture_is_not_one_of_a_plain_dataset_nor_the_other_way_round():
    with make() as mixed, loader() as plain:
        of_mixture, of_plain = mixed.state_dict(), plain.state_dict()
        with pytest.raises(StateError, match="of a Mix"):
            plain.load_state_dict(of_mixture)
        with pytest.raises(StateError, match="no Mix"):
            mixed.load_state_dict(of_plain)


@pytest.mark.parametrize(
    "damage", [{"segments": []}, {"segments": [[0, [1], [0]]]}, {"origin": []}, {"sources": 3}, {"length": "x"}]
)
def test_a_damaged_mixture_is_refused(damage):
    from stoker.plan import check_sum

    with make() as packed:
        state = packed.state_dict()
        state["mixture"] = {**state["mixture"], **damage}
        state["check"] = check_sum(state)
        with pytest.raises(StateError, match="its mixture cannot be read"):
            packed.load_state_dict(state)


def test_sources_may_be_added_where_an_epoch_begins():
    """Those that stay go on where they were: the other half of the web comes next."""
    with make(length=50, weights=ONLY_WEB, shuffle=True) as packed:
        seen = tokens_of(list(packed))
        state = through_json(packed.state_dict())
    more = {"web": WEB, "books": Shifted(Documents(30, seed=2))}
    with make([1, 1], sources=more, length=100) as packed:
        packed.load_state_dict(state)
        assert packed.epoch == 1
        found = tokens_of(list(packed))
        assert tokens_of(list(packed))
    web = Counter({token: count for token, count in found.items() if token < 1_000_000})
    assert seen + web == all_tokens(WEB)


# Weights that are set


class Rows(Documents):
    """Each sequence is a row of its own, so that a window is four batches."""

    def __init__(self, count):
        self.lengths = [24] * count


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)])
def test_weights_hold_from_the_next_window_that_no_worker_has_and_are_part_of_the_state(workers):
    sources = {"web": Rows(100), "code": Shifted(Rows(40))}
    with endless(ONLY_WEB, sources=sources, workers=workers) as packed:
        batches = iter(packed)
        first = [kept(next(batches)) for _ in range(5)]  # of the first two windows
        windows = packed.set_weights(ONLY_CODE)
        state = through_json(packed.state_dict())
        rest = [kept(next(batches)) for _ in range(4 * windows + 10)]
    assert 1 <= windows <= 8  # what workers have is still delivered
    before = 4 * (2 + windows)
    assert [has_code(batch) for batch in first + rest] == [False] * before + [True] * (len(first + rest) - before)
    with endless(ONLY_WEB, sources=sources) as packed:
        packed.load_state_dict(state)
        assert_same(take(packed, len(rest)), rest)


def test_resuming_at_any_batch_gives_the_same_stream_whatever_was_set_before():
    changes = {3: ONLY_CODE, 4: BOTH, 11: ONLY_WEB}
    with endless() as packed:
        states, whole = [], []
        for step, batch in enumerate(islice(iter(packed), 25)):
            whole.append(kept(batch))
            if step in changes:
                packed.set_weights(changes[step])
            states.append(through_json(packed.state_dict()))
    for step in range(11, 20):
        with endless(workers=Threads(2) if step % 3 == 0 else 0) as packed:
            packed.load_state_dict(states[step])
            assert_same(take(packed, 5), whole[step + 1 : step + 6])


def test_a_state_that_is_loaded_while_workers_run_brings_its_weights():
    with endless(ONLY_WEB) as packed:
        packed.set_weights(ONLY_CODE)
        state, expected = packed.state_dict(), take(packed, 5)
    with endless(ONLY_WEB, workers=Threads(2)) as packed:
        take(packed, 3)
        packed.load_state_dict(state)
        assert_same(take(packed, 5), expected)


def test_shards_set_weights_between_the_same_two_loops():
    new = functools.partial(make, ONLY_WEB, even_shards=False)
    found = Counter()
    for shard in range(2):
        with new(shard=(shard, 2), workers=Threads(2)) as packed:
            list(packed)
            assert packed.set_weights(BOTH) == 0
            found += tokens_of(list(packed))
            next(iter(packed))
            with pytest.raises(ValueError, match="in the middle of an epoch, on 2 shards with pack="):
                packed.set_weights(ONLY_CODE)
    with new() as packed:
        packed.set_epoch(1)
        assert packed.set_weights(BOTH) == 0
        assert found == tokens_of(list(packed))


def test_weights_after_a_number_of_batches_are_refused():
    with make() as packed, pytest.raises(ValueError, match=r"after=3\) of a loader with pack="):
        packed.set_weights(BOTH, after=3)
    with loader() as packed, pytest.raises(TypeError, match=r"stoker\.Mix"):
        packed.set_weights([1])


# What goes by batches or samples


def test_a_schedule_is_refused():
    with pytest.raises(ValueError, match=r"weights change at step 10, with pack=.*set_weights"):
        make([(0, ONLY_WEB), (10, ONLY_CODE)])


def test_a_tag_that_is_no_key_is_refused():
    with pytest.raises(ValueError, match=r"tag='source'\) with pack="):
        make(tag="source")


def test_each_token_has_the_number_of_its_source():
    web = [{"tokens": np.full(size, 7)} for size in range(12)]
    code = [{"tokens": np.full(size, 9)} for size in range(5)]
    mix = Mix({"web": web, "code": code}, {"web": 2, "code": 1}, ends="all", tag="source")
    pack = stoker.Pack(16, keys=("tokens", "source"), pad={"source": -1}, window=4)
    for workers in (0, 2):
        with stoker.Loader(mix, 4, shuffle=True, pack=pack, workers=workers) as loader:
            for batch in loader:
                expected = np.where(batch["tokens"] == 7, 0, np.where(batch["tokens"] == 9, 1, -1))
                assert (batch["source"] == expected).all()
                assert ((batch["source"] == -1) == (batch["segment_ids"] == 0)).all()


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_samples_that_fail_are_left_out_or_replaced_by_one_of_their_source(on_error, caplog):
    options = {"sources": {"web": Failing(), "code": Shifted(CODE)}, "on_error": on_error}
    with make(**options) as packed:
        batches = list(packed)
    check_segments(batches)
    assert_resumable(functools.partial(make, **options), epochs=1, steps=4)
    good = all_tokens(WEB, [index for index in range(100) if index % 10 != 3])
    web = {token for token in tokens_of(batches) if token < 1_000_000}
    assert web <= good.keys()
