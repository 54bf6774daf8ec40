"""``on_error="replace"``: another sample takes the place of one that fails, and the batch keeps its size."""

from __future__ import annotations

import functools
import logging
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from stoker import Cache, Chunks, Inline, Loader, Processes, Rotation, Threads, TooManyErrors, WorkerDied
from stoker.plan import replacements
from tests.datasets import Rows
from tests.observe.faults import Fatal, FatalTogether, Moody, Patchy, lines

N = 40


def indices_of(loader):
    return [np.atleast_2d(batch)[:, 0].tolist() for batch in loader]


def replaced(index, bad, seed=0, epoch=0, among=range(N)):
    return next(one for one in [index, *replacements(seed, epoch, index, among)] if one not in bad)


def expected(bad, epoch=0, size=8):
    whole = [replaced(index, bad, epoch=epoch) for index in range(N)]
    return [whole[start : start + size] for start in range(0, N, size)]


class Together(Patchy):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize("dataset", [Patchy, Together])
@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=str)
def test_batches_keep_their_size_and_the_same_samples_take_the_places_everywhere(dataset, workers):
    bad = [3, 4, 13, 39]
    with Loader(dataset(N, bad), 8, workers=workers, on_error="replace") as loader:
        assert indices_of(loader) == expected(bad)
        assert indices_of(loader) == expected(bad, epoch=1)
        stats = loader.stats()
    assert (stats.skipped, stats.samples, stats.batches) == (0, 2 * N, 10)
    assert stats.replaced >= 8
    assert "replaced" in repr(stats)
    assert f"samples replaced: {stats.replaced}" in stats.to_text()


@given(st.sets(st.integers(0, N - 1), max_size=30), st.sampled_from([None, 1, 7]), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_whatever_fails_it_is_as_a_naive_model_says(bad, size, seed):
    options = {"shuffle": True, "seed": seed, "workers": Inline(), "on_error": "replace", "max_errors": 10**6}
    with Loader(Patchy(N, sorted(bad)), size, **options) as loader:
        plan = [loader.indices(0, step) for step in range(len(loader))]
        chains = [[[i, *replacements(seed, 0, i, range(N))] for i in batch] for batch in plan]
        lost = any(all(one in bad for one in chain) for batch in chains for chain in batch)
        if lost:
            with pytest.raises(ValueError, match="is bad") as raised:
                indices_of(loader)
            assert any("all that were tried in its place" in note for note in raised.value.__notes__)
        else:
            found = [[next(one for one in chain if one not in bad) for chain in batch] for batch in chains]
            assert indices_of(loader) == found


def test_what_is_random_is_the_same_on_every_backend_and_after_a_resume():
    def batches(workers, state=None):
        with Loader(Moody(60), 6, shuffle=True, workers=workers, on_error="replace") as loader:
            if state is not None:
                loader.load_state_dict(state)
            for batch in loader:
                yield batch, loader.state_dict()

    whole = list(batches(Inline()))
    for workers in (Threads(3), Processes(2)):
        for (one, _), (other, _) in zip(whole, batches(workers), strict=True):
            np.testing.assert_equal(one, other)
    rest = list(batches(Processes(2), whole[3][1]))
    for (one, _), (other, _) in zip(whole[4:], rest, strict=True):
        np.testing.assert_equal(one, other)


@pytest.mark.parametrize("dataset", [Fatal, FatalTogether])
@pytest.mark.parametrize("size", [1, 8])
def test_samples_that_kill_their_worker_are_replaced_too(dataset, size):
    bad, deadly = [9, 14], [13, 20]
    options = {"workers": Processes(2), "on_error": "replace", "max_deaths": 1}
    with Loader(dataset(N, deadly=deadly, bad=bad), size, **options) as loader:
        assert indices_of(loader) == expected([*bad, *deadly], size=size)
        assert loader.stats().replaced >= 4


def test_a_replacement_that_kills_is_replaced_in_its_turn(caplog):
    first, second = list(replacements(0, 0, 13, range(N)))[:2]
    deadly = [13, first, second]
    with Loader(Fatal(N, deadly=deadly), 8, workers=Processes(2), on_error="replace", max_deaths=1) as loader:
        assert indices_of(loader) == expected(deadly)
    assert "a sample that replaced it killed its worker" in caplog.text


def test_a_sample_that_hangs_in_a_thread_is_replaced():
    release = threading.Event()

    class Waiting(Rows):
        def __getitem__(self, index):
            if index == 13:
                release.wait()
            return self.data[index]

    with Loader(Waiting(N), 8, workers=Threads(2), timeout=0.5, max_deaths=1, on_error="replace") as loader:
        assert indices_of(loader) == expected([13])
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("stoker-worker"):
            thread.join()


def test_if_all_that_are_tried_kill_it_is_an_error():
    with Loader(Fatal(3, deadly=[0, 1, 2]), 1, workers=1, on_error="replace", max_deaths=1) as loader:
        with pytest.raises(WorkerDied):
            indices_of(loader)


def test_if_there_is_no_other_sample_the_error_is_raised():
    with Loader(Patchy(1, [0]), 1, workers=Inline(), on_error="replace") as loader:
        with pytest.raises(ValueError, match="sample 0 is bad"):
            indices_of(loader)


def test_a_replacement_is_of_the_same_source():
    class TwoSources(Patchy):
        def source_range(self, index):
            return range(10) if index < 10 else range(10, N)

    bad = [2, 3, 12, 30]
    with Loader(TwoSources(N, bad), N, workers=Inline(), on_error="replace") as loader:
        (batch,) = indices_of(loader)
    assert batch == [replaced(i, bad, among=range(10) if i < 10 else range(10, N)) for i in range(N)]


@pytest.mark.parametrize("workers", [Inline(), Processes(2)], ids=str)
def test_with_a_cache_replacements_have_the_random_numbers_of_a_kept_sample(workers, tmp_path):
    class Noisy(Rows):
        def __getitem__(self, index):
            if index in (5, 21):
                raise OSError(f"no sample {index}")
            return {"index": index, "noise": np.random.rand()}

    options = {"workers": workers, "on_error": "replace", "cache": Cache(tmp_path / "cache")}
    with Loader(Noisy(N), 8, **options) as loader:
        for _ in range(2):
            batches = list(loader)
            assert [len(batch["index"]) for batch in batches] == [8] * 5
            noise = {}
            for batch in batches:
                for index, drawn in zip(batch["index"].tolist(), batch["noise"].tolist(), strict=True):
                    assert noise.setdefault(index, drawn) == drawn
            assert len(noise) == 38


def test_failures_count_for_max_errors_are_logged_and_recorded_if_asked(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "stoker")
    options = {"workers": Inline(), "on_error": "replace", "quarantine": tmp_path / "q.jsonl"}
    with Loader(functools.partial(Patchy, N, [3, 13]), 8, **options) as loader:
        indices_of(loader)
        assert loader.stats().replaced == 2
        assert loader.state_dict()["skipped"] == 0, "of the next epoch"
    assert [record["index"] for record in lines(tmp_path / "q.jsonl")] == [3, 13]
    assert "replaced sample 3 of epoch 0: ValueError: sample 3 is bad" in caplog.text
    with Loader(Patchy(N, [3, 13]), 8, workers=Inline(), on_error="replace", max_errors=1) as loader:
        with pytest.raises(TooManyErrors, match="2 of 40 samples of epoch 0 failed; 1 may"):
            indices_of(loader)


def test_where_there_is_no_other_sample_it_is_refused():
    with pytest.raises(ValueError, match=r'"replace" and rotation='):
        Loader(Rows(), on_error="replace", rotation=Rotation(2))
    with pytest.raises(ValueError, match=r"and items have none"):
        stoker.stream(abs, [1], on_error="replace")
    with pytest.raises(ValueError, match=r"and Chunks have none"):
        Loader(Chunks(["a.npy"]), on_error="replace")
