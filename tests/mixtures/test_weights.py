"""Weights that change, by schedule and at run time; and states, which keep them."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from stoker import Inline, Loader, Mix, Processes, StateError, Threads
from stoker.plan import check_sum
from tests.streams import assert_same, kept

WEB, CODE = range(1000), range(1000, 1300)
ONLY_WEB, ONLY_CODE, BOTH = {"web": 1, "code": 0}, {"web": 0, "code": 1}, {"web": 0.75, "code": 0.25}


def mix(weights=BOTH, **options):
    return Mix({"web": WEB, "code": CODE}, weights, **({"length": 100} | options))


def make(weights=BOTH, *, workers=0, size=10, **options):
    kinds = {name: options.pop(name) for name in ("by", "ends", "length", "tag") if name in options}
    return Loader(mix(weights, **kinds), size, shuffle=True, seed=5, workers=workers, **options)


def take(loader, count):
    """The next so many batches, over the borders of epochs."""
    found = []
    while len(found) < count:
        for batch in loader:
            found.append(kept(batch))
            if len(found) == count:
                break
    return found


def shares(batches):
    """Of code in each."""
    return [float((batch >= 1000).mean()) for batch in batches]


def through_json(state):
    return json.loads(json.dumps(state))


def test_a_schedule_changes_weights_at_its_steps():
    with make([(0, ONLY_WEB), (3, ONLY_CODE), (5, [0.5, 0.5])]) as loader:
        assert shares(take(loader, 8)) == [0, 0, 0, 1, 1, 0.5, 0.5, 0.5]


def test_steps_of_a_schedule_count_on_from_epoch_to_epoch():
    """Also where the last round of each is short: epochs of 95 samples have ten steps."""
    with make([(0, ONLY_WEB), (12, ONLY_CODE)], length=95) as loader:
        assert shares(take(loader, 15)) == [0] * 12 + [1] * 3


def test_a_step_is_one_round_over_all_shards():
    weights = [(0, ONLY_WEB), (3, ONLY_CODE)]
    for shard in range(2):
        with make(weights, shard=(shard, 2), size=5) as loader:
            assert shares(take(loader, 6)) == [0, 0, 0, 1, 1, 1]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9), st.integers(1, 9)), max_size=4),
    st.integers(0, 30),
    st.sampled_from(["quota", "chance"]),
)
def test_a_resume_at_any_step_gives_the_very_same_stream_whatever_was_set_before(changes, resumed_at, by):
    """Contract: weights that were set are part of the state; other numbers of shards go on with the same stream."""
    pending = {step: [float(web), float(code)] for step, web, code in changes}
    with make(by=by, ends="never", length=None) as loader:
        whole, states = [], []
        for step, batch in enumerate(loader):
            whole.append(kept(batch))
            states.append(through_json(loader.state_dict()))
            if step in pending:
                loader.set_weights(pending[step], after=2)
                states[-1] = through_json(loader.state_dict())
            if step == 45:
                break
    last = max(pending, default=0)
    state = states[max(resumed_at, last)]
    begin = max(resumed_at, last) + 1
    with make(by=by, ends="never", length=None) as loader:
        loader.load_state_dict(state)
        assert through_json(loader.state_dict()) == state
        assert_same(take(loader, 10), whole[begin : begin + 10])
    halves = []
    for shard in range(2):
        with make(by=by, ends="never", length=None, shard=(shard, 2), size=10) as loader:
            loader.load_state_dict(state)
            halves.append(take(loader, 5))
    assert_same([batch for pair in zip(*halves, strict=True) for batch in pair], whole[begin : begin + 10])


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)])
@pytest.mark.parametrize("after", [None, 0, 3])
def test_weights_that_are_set_reach_workers_that_run(workers, after):
    """What workers have been given still comes, unless the change is asked for earlier."""
    with make(ONLY_WEB, workers=workers, ends="never", length=None) as loader:
        batches = iter(loader)
        first = [kept(next(batches)) for _ in range(5)]
        before = loader.set_weights(ONLY_CODE, after=after)
        state = through_json(loader.state_dict())
        rest = [kept(next(batches)) for _ in range(before + 12)]
    assert after is None or before == after
    assert before <= 64
    assert shares(first + rest) == [0] * (5 + before) + [1] * 12
    with make(ONLY_WEB, ends="never", length=None) as loader:
        loader.load_state_dict(state)
        assert_same(take(loader, before + 12), rest)


def test_without_workers_the_next_batch_has_the_weights_that_were_set():
    with make(ONLY_WEB) as loader:
        assert loader.set_weights(ONLY_CODE) == 0
        assert shares(take(loader, 2)) == [1, 1]


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_change_may_lie_in_a_later_epoch(drop_last):
    with make(ONLY_WEB, length=95, drop_last=drop_last) as loader:
        steps = len(loader)
        assert loader.set_weights(ONLY_CODE, after=2 * steps + 3) == 2 * steps + 3
        assert shares(take(loader, 2 * steps + 5)) == [0] * (2 * steps + 3) + [1] * 2


@pytest.mark.parametrize("workers", [Inline(), Threads(2)])
def test_what_workers_were_given_is_still_delivered(workers):
    """Nothing that was prefetched is thrown away, unless ``after`` asks for it."""
    asked = []

    class Counted:
        def __len__(self):
            return 1000

        def __getitem__(self, index):
            asked.append(index)
            return index

    with Loader(Mix({"web": Counted(), "code": CODE}, ONLY_WEB, ends="never"), 10, workers=workers) as loader:
        batches = iter(loader)
        next(batches)
        before = loader.set_weights(ONLY_CODE)
        assert shares([kept(next(batches)) for _ in range(before + 3)]) == [0] * before + [1] * 3
    assert before > 0
    assert sorted(asked) == list(range(10 * (1 + before)))


def test_weights_that_are_set_end_the_schedule():
    with make([(0, ONLY_WEB), (4, BOTH)]) as loader:
        loader.set_weights(ONLY_CODE, after=2)
        assert shares(take(loader, 6)) == [0, 0, 1, 1, 1, 1]


def test_out_of_order_a_change_leaves_what_was_taken_as_it_is():
    with make(ONLY_WEB, workers=Threads(3), in_order=False, ends="never", length=None) as loader:
        batches = iter(loader)
        first = [kept(next(batches)) for _ in range(10)]
        before = loader.set_weights(ONLY_CODE, after=4)
        state = through_json(loader.state_dict())
        rest = [kept(next(batches)) for _ in range(30)]
    assert shares(first) == [0] * 10
    assert before == 4
    assert sum(shares(rest)) > 10
    with make(ONLY_WEB, in_order=False, ends="never", length=None) as loader:
        loader.load_state_dict(state)
        again = take(loader, 60)
    assert {tuple(batch) for batch in rest} <= {tuple(batch) for batch in again}


def test_where_a_thread_moves_batches_to_a_device_prefetched_ones_are_made_again():
    with make(
        ONLY_WEB, workers=Threads(2), ends="never", length=None, device="fake", to_device=lambda batch: batch.copy()
    ) as loader:
        batches = iter(loader)
        first = [kept(next(batches)) for _ in range(5)]
        assert loader.set_weights(ONLY_CODE) == 0
        state = through_json(loader.state_dict())
        rest = [kept(next(batches)) for _ in range(5)]
        assert loader.set_weights(ONLY_WEB, after=2) == 2
        rest += [kept(next(batches)) for _ in range(5)]
    assert shares(first + rest) == [0] * 5 + [1] * 7 + [0] * 3
    with make(ONLY_WEB, ends="never", length=None) as loader:
        loader.load_state_dict(state)
        assert_same(take(loader, 7), rest[:7])


def test_a_worker_that_dies_makes_its_batch_again_with_the_weights_that_were_set(tmp_path):
    found = Mix({"web": Deadly(tmp_path / "once"), "code": CODE}, ONLY_WEB, ends="never")
    with Loader(found, 10, workers=Processes(1)) as loader:
        batches = iter(loader)
        next(batches)
        before = loader.set_weights([1, 1], after=5)
        rest = [kept(next(batches)) for _ in range(before + 30)]
    assert shares(rest) == [0] * 5 + [0.5] * 30


class Deadly:
    """Kills its worker at one sample, once."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        import os

        if index == 150 and not self.path.exists():
            self.path.touch()
            os._exit(3)
        return index


class Broken(Deadly):
    def __getitem__(self, index):
        import os

        if index == 150:
            os._exit(3)
        return index


def test_a_sample_that_kills_is_left_out_also_where_weights_were_set(tmp_path):
    """Its worker is told both: what to leave out, and the weights."""
    found = Mix({"web": Broken(tmp_path), "code": CODE}, ONLY_WEB, ends="never")
    with Loader(found, 10, workers=Processes(1), on_error="skip", max_deaths=1) as loader:
        batches = iter(loader)
        next(batches)
        loader.set_weights([1, 1], after=0)
        rest = [sample for _ in range(40) for sample in next(batches).tolist()]
    assert [sample for sample in rest if sample < 1000] == [*range(10, 150), *range(151, 210)]
    assert [sample for sample in rest if sample >= 1000] == list(range(1000, 1200))


def test_shards_must_say_when():
    with make(shard=(0, 2)) as loader, pytest.raises(ValueError, match="Pass after=n"):
        loader.set_weights(ONLY_WEB)


def test_weights_are_checked_when_they_are_set():
    with make() as loader:
        for weights, message in [
            ({"web": 1}, "no weight for 'code'"),
            ([1, -1], "'code' is -1"),
            ([0, 0], "all weights"),
        ]:
            with pytest.raises(ValueError, match=message):
                loader.set_weights(weights)
        for after in (-1, 1.5, "2", True):
            with pytest.raises(ValueError, match="pass a whole number of batches"):
                loader.set_weights([1, 1], after=after)
    with Loader(WEB, 4) as loader, pytest.raises(TypeError, match=r"stoker\.Mix"):
        loader.set_weights([1])
    with pytest.raises(stoker.ClosedError):
        loader.set_weights([1])


def test_a_state_of_other_weights_says_so():
    with make() as loader:
        take(loader, 3)
        state = loader.state_dict()
    with make(ONLY_WEB) as loader, pytest.raises(StateError, match=r"call loader\.set_weights"):
        loader.load_state_dict(state)
    with make(length=50) as loader, pytest.raises(StateError, match="whose ends are 100"):
        loader.load_state_dict(state)
    with make(by="chance") as loader, pytest.raises(StateError, match="by='quota'"):
        loader.load_state_dict(state)
    with Loader(WEB, 10, shuffle=True, seed=5) as loader, pytest.raises(StateError, match="of a Mix"):
        loader.load_state_dict(state)
    with Loader(WEB, 10, shuffle=True, seed=5) as loader:
        plain = loader.state_dict()
    with make() as loader, pytest.raises(StateError, match="no Mix"):
        loader.load_state_dict(plain)


@pytest.mark.parametrize(
    "damage",
    [
        {"segments": []},
        {"segments": [[0, [1], [0], [0]]]},
        {"segments": [[0, [1, 1], [0, 0]]]},
        {"segments": [[0, [0, 0], [0, 0], [0, 0]]]},
        {"segments": [[0, [1, -1], [0, 0], [0, 0]]]},
        {"segments": [[0, [1, 1], [0, -1], [0, 0]]]},
        {"segments": [[0, [1, 1], [0, 0], [0, float("inf")]]]},
        {"segments": [[5, [1, 1], [0, 0], [0, 0]]]},
        {"segments": [[0, [1, 1], [0, 0], [0, 0]], [0, [1, 1], [0, 0], [0, 0]]]},
        {"origin": []},
        {"sources": 3},
        {"sources": [[1, 2], [3, 4]]},
        {"length": "x"},
        {"length": float("inf")},
        {"stride": 0},
    ],
)
def test_a_damaged_mixture_is_refused(damage):
    from stoker.plan import check_sum

    with make() as loader:
        state = loader.state_dict()
        state["mixture"] = {**state["mixture"], **damage}
        with pytest.raises(StateError, match="damaged"):
            loader.load_state_dict(state)
        state["check"] = check_sum(state)
        with pytest.raises(StateError, match="its mixture cannot be read"):
            loader.load_state_dict(state)


def test_sources_may_be_added_and_taken_away_where_an_epoch_begins():
    """Those that stay go on where they were."""
    with make(ends=None, length=100) as loader:
        seen = [sample for batch in take(loader, 10) for sample in batch.tolist()]
        state = through_json(loader.state_dict())
    other = Mix({"books": range(5000, 5100), "web": WEB}, [0.5, 0.5], length=60)
    with Loader(other, 10, shuffle=True, seed=5) as loader:
        loader.load_state_dict(state)
        assert loader.epoch == 1
        found = [sample for batch in take(loader, 6) for sample in batch.tolist()]
        web = [sample for sample in found if sample < 1000]
        assert len(web) == 30
        assert not set(web) & set(seen)
        again = through_json(loader.state_dict())
        rest = take(loader, 12)
    with Loader(other, 10, shuffle=True, seed=5, workers=Threads(2)) as loader:
        loader.load_state_dict(again)
        assert_same(take(loader, 12), rest)
        loader.set_epoch(0)
        with pytest.raises(ValueError, match="before the sources of this mixture were changed"):
            take(loader, 1)


def test_sources_cannot_change_in_the_middle_of_an_epoch_or_change_their_length():
    with make() as loader:
        take(loader, 3)
        middle = loader.state_dict()
        take(loader, 7)
    with Loader(Mix({"web": WEB}, length=100), 10, shuffle=True, seed=5) as loader:
        with pytest.raises(
            StateError, match="in the middle of an epoch of the sources web, code, and this Mix has web"
        ):
            loader.load_state_dict(middle)
    with Loader(Mix({"web": WEB, "code": range(10)}, BOTH, length=100), 10, shuffle=True, seed=5) as loader:
        with pytest.raises(StateError, match="300 samples in the source 'code', which has 10 now"):
            loader.load_state_dict(middle)


def test_a_loader_of_a_mix_pickles_with_its_weights():
    with make(ONLY_WEB) as loader:
        loader.set_weights(ONLY_CODE, after=2)
        copied = pickle.loads(pickle.dumps(loader))
    with copied:
        assert shares(take(copied, 4)) == [0, 0, 1, 1]


def test_an_automatic_shard_that_is_found_late_moves_the_schedule(monkeypatch):
    """A step is a batch of each shard, however many these turn out to be."""
    with make([(0, ONLY_WEB), (3, ONLY_CODE)], shard="auto") as loader:
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert shares(take(loader, 5)) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("by", ["quota", "chance"])
def test_a_state_of_another_formula_is_refused_rather_than_taken_for_another_order(by):
    loader = Loader(Mix({"a": range(20), "b": range(100, 120)}, [2, 1], by=by), 4)
    next(iter(loader))
    state = loader.state_dict()
    state["plan"]["order"] = f"Mix(by={by!r})"  # as it was before sources kept within one of their shares
    state["check"] = check_sum(state)
    with pytest.raises(StateError, match="formula"):
        loader.load_state_dict(state)
