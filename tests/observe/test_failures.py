"""Samples that fail are left out, just they: counted, limited, and the same on every backend.

Those that kill their worker: ``test_fatal_samples.py``; the file that they are written down in: ``test_quarantine.py``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

import numpy as np
import pytest

from stoker import Inline, Loader, Threads, TooManyErrors
from stoker.observe import ErrorPolicy
from stoker.plan import Plan
from tests.datasets import Failing, Rows
from tests.observe.faults import Moody, Patchy, but, lines, logged, take, taken
from tests.streams import assert_same, epochs, kept

KINDS = ["value", "arguments", "unpicklable", "local", "os", "stop"]


# Left out: just they, and everywhere alike


@pytest.mark.parametrize("batch_size", [None, 1, 5, 40])
def test_a_sample_that_fails_is_left_out_and_no_other(backend, batch_size):
    with Loader(Failing(40), batch_size, workers=backend, on_error="skip") as loader:
        for _ in range(2):
            assert taken(loader) == but(13)
        assert loader.stats().skipped == 2
        assert loader.stats().samples == 78
        assert len(loader) == -(-40 // (batch_size or 1))


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_error_will_do(backend, kind):
    with Loader(Failing(40, kind), 5, workers=backend, on_error="skip") as loader:
        assert taken(loader) == but(13)


def test_a_sample_that_leaves_the_program_is_left_out_too(backend):
    class Leaving(Rows):
        def __getitem__(self, index):
            return sys.exit(4) if index == 13 else self.data[index]

    with Loader(Leaving(40), 5, workers=backend, on_error="skip") as loader:
        assert taken(loader) == but(13)


def test_an_error_that_cannot_even_be_told_is_left_out_too(backend, tmp_path):
    class Untellable(Rows):
        def __getitem__(self, index):
            class Dumb(Exception):
                def __str__(self):
                    raise RuntimeError("no words")

            if index == 13:
                raise Dumb
            return self.data[index]

    file = tmp_path / "q.jsonl"
    with Loader(Untellable(40), 5, workers=backend, on_error="quarantine", quarantine=file) as loader:
        assert taken(loader) == but(13)
    (record,) = lines(file)
    assert record["error"].startswith("Dumb: ")


def test_a_batch_of_which_nothing_is_left_does_not_come(backend):
    dataset = Patchy(40, [10, 11, 12, 13, 14, 17])
    with Loader(dataset, 5, workers=backend, on_error="skip") as loader:
        sizes = [len(batch) for batch in loader]
    assert sizes == [5, 5, 4, 5, 5, 5, 5]


def test_errors_of_collate_are_raised_all_the_same(backend):
    def picky(samples):
        if any(sample[0] == 13 for sample in samples):
            raise KeyError("not this one")
        return np.stack(samples)

    with Loader(Rows(40), 5, workers=backend, on_error="skip", collate=picky) as loader:
        with pytest.raises(KeyError, match="not this one"):
            list(loader)


def test_the_stream_is_the_same_on_every_backend(backend):
    """Contract: what fails is part of the stream, also where it depends on random numbers."""

    def make(workers, **options):
        return Loader(Moody(60), 7, shuffle=True, workers=workers, on_error="skip", **options)

    with make(Inline()) as oracle:
        expected = epochs(oracle, 3)
        skipped = oracle.stats().skipped
    with make(backend) as loader:
        assert_same(epochs(loader, 3), expected)
        assert loader.stats().skipped == skipped > 18
    with make(backend, in_order=False) as loader:
        for epoch in expected:
            found = Counter(index for batch in loader for index in batch["index"].tolist())
            assert found == Counter(index for batch in epoch for index in batch["index"].tolist())


def test_the_stream_goes_on_after_a_resume_at_each_step(backend):
    """With the same batches, and the same count of what was left out."""

    def make(workers):
        return Loader(Moody(30), 4, shuffle=True, workers=workers, on_error="skip", seed=5)

    with make(Inline()) as oracle:
        stream = [batch for epoch in epochs(oracle, 3) for batch in epoch]
    states = []
    with make(backend) as loader:
        for _ in range(2):
            for _ in loader:
                states.append(json.loads(json.dumps(loader.state_dict())))
    assert max(state["skipped"] for state in states) > 3
    with make(Threads(2) if backend == Inline() else Inline()) as loader:
        for step, state in enumerate(states, 1):
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            assert_same(take(loader, 3), stream[step : step + 3])
            assert [loader.state_dict()] == (states[step + 2 : step + 3] or [loader.state_dict()])


def test_where_whole_batches_are_asked_for_one_that_fails_is_asked_for_one_by_one(backend):
    class Gathered(Patchy):
        def __getitems__(self, indices):
            return [Patchy.__getitem__(self, index) for index in indices]

    with Loader(Gathered(40, [3, 13, 14]), 5, workers=backend, on_error="skip") as loader:
        assert taken(loader) == but(3, 13, 14)


# How many


@pytest.mark.parametrize(
    ("limit", "passes"), [(3, True), (2, False), (0, False), (0.075, True), (0.07, False), (1.0, True)]
)
def test_the_limit_is_a_count_or_a_share_of_the_epoch(backend, limit, passes):
    """Per epoch: the count begins anew with each."""
    with Loader(Patchy(40, [3, 13, 33]), 5, workers=backend, on_error="skip", max_errors=limit) as loader:
        if passes:
            assert [taken(loader) for _ in range(3)] == [but(3, 13, 33)] * 3
        else:
            with pytest.raises(TooManyErrors):
                list(loader)


def test_a_share_is_rounded_down_but_not_below_what_was_written():
    """0.29 * 100 is 28.999999999999996."""
    for percent in range(101):
        policy = ErrorPolicy("skip", percent / 100)
        assert policy.limit(Plan(100, 5)) == percent
        assert policy.limit(Plan(199, 5)) == 199 * percent // 100


@pytest.mark.parametrize(
    ("plan", "samples"),
    [
        ({"length": 40}, (20, 20)),
        ({"length": 43}, (21, 22)),
        ({"length": 43, "drop_last": True}, (20, 20)),
        ({"length": 4}, (2, 2)),
        ({"length": 41, "batch_size": None}, (21, 21)),  # one of them twice, since no shard may run short
        ({"length": 0}, (0, 0)),
    ],
)
def test_a_share_is_of_the_samples_that_this_shard_gets(plan, samples):
    for shard in (0, 1):
        assert ErrorPolicy("skip", 1.0).limit(Plan(**{"batch_size": 5, **plan, "shard": (shard, 2)})) == samples[shard]


def test_each_shard_has_a_limit_of_its_own():
    settings = {"on_error": "skip", "max_errors": 0.1}
    with Loader(Patchy(40, [1, 2, 11]), 5, shard=(0, 2), **settings) as loader:
        with pytest.raises(TooManyErrors, match="3 of 20 samples of epoch 0 failed; 2 may"):
            list(loader)
    with Loader(Patchy(40, [1, 2, 6, 16]), 5, shard=(1, 2), **settings) as loader:
        assert len(taken(loader)) == 18


def test_the_error_has_figures_and_a_remedy_and_tells_how_the_last_one_failed(backend):
    with Loader(Patchy(40, [3, 13, 33]), 5, workers=backend, on_error="skip", max_errors=0.05) as loader:
        iterator = iter(loader)
        before = [kept(next(iterator)) for _ in range(6)]
        with pytest.raises(TooManyErrors) as caught:
            next(iterator)
        assert taken(before) == but(3, 13)[:28]
        assert str(caught.value) == (
            "3 of 40 samples of epoch 0 failed; 2 may (max_errors=0.05). The last one was 33: "
            "ValueError: sample 33 is bad. Mend the dataset, or raise max_errors"
        )
        (note,) = caught.value.__notes__
        assert note.startswith("stoker: how sample 33 failed:\nTraceback (most recent call last)")
        assert "in __getitem__" in note
        assert taken(iterator) == [35, 36, 37, 38, 39]  # whoever goes on passes over that batch


def test_a_dataset_that_fails_wholly_is_an_error_unless_all_may_fail(backend):
    dataset = Patchy(20, range(20))
    with Loader(dataset, 5, workers=backend, on_error="skip") as loader:
        with pytest.raises(TooManyErrors, match=r"20 of 20 samples of epoch 0 failed; 19 may \(all but one\)"):
            list(loader)
    with Loader(dataset, 5, workers=backend, on_error="skip", max_errors=1.0) as loader:
        assert [list(loader) for _ in range(2)] == [[], []]
        assert loader.epoch == 2
        assert loader.stats().skipped == 40


def test_the_count_is_carried_over_a_resume(backend):
    settings = {"workers": backend, "on_error": "skip", "max_errors": 3}
    dataset = Patchy(40, [1, 2, 21, 32])
    with Loader(dataset, 5, **settings) as loader:
        iterator = iter(loader)
        assert loader.state_dict()["skipped"] == 0
        next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["skipped"] == 2
    with Loader(dataset, 5, **settings) as loader:
        loader.load_state_dict(state)
        with pytest.raises(TooManyErrors, match="4 of 40 samples of epoch 0 failed; 3 may"):
            list(loader)
        again = loader.state_dict()
        assert again["skipped"] == 3
        loader.load_state_dict(again)  # leads to the same batch
        with pytest.raises(TooManyErrors, match="4 of 40"):
            next(iter(loader))
    with Loader(Patchy(40, [21, 32]), 5, **settings) as loader:
        loader.set_epoch(1)  # another epoch: another count
        assert taken(loader) == but(21, 32)


def test_only_the_first_few_are_logged_one_by_one(caplog):
    with Loader(Patchy(300, range(0, 260, 2)), 5, on_error="skip") as loader:
        list(loader)
    assert len(logged(caplog, "skipped sample")) == 20 + 1
    assert logged(caplog, "skipped sample")[0] == "skipped sample 0 of epoch 0: ValueError: sample 0 is bad"
    assert len(logged(caplog, "only every hundredth")) == 1


# Arguments


@pytest.mark.parametrize("limit", [-1, -0.1, 1.5, float("nan"), True, "3", [3]])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(
        ValueError, match=r"max_errors=.*pass a number of samples, or a share of them from 0\.0 to 1\.0"
    ):
        Loader(Rows(), on_error="skip", max_errors=limit)


def test_arguments_that_would_be_in_vain_are_refused():
    with pytest.raises(ValueError, match='max_errors=3 needs on_error="skip", "quarantine" or "replace"'):
        Loader(Rows(), max_errors=3)
    for on_error in ("raise", "skip"):
        with pytest.raises(ValueError, match=r"quarantine='q\.jsonl' needs on_error=\"quarantine\""):
            Loader(Rows(), on_error=on_error, quarantine="q.jsonl")
    with pytest.raises(TypeError):
        Loader(Rows(), on_error="quarantine", quarantine=3)
