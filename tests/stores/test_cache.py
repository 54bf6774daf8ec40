"""Each sample is made once, whoever asks for it and however often; and the stream is that of plan and seed."""

from __future__ import annotations

import functools
import os
import pickle
import random
import signal
from collections import Counter

import numpy as np
import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.testing import assert_resumable
from tests.conftest import BACKENDS
from tests.datasets import Gathering, Growing, Ragged, Rows
from tests.stores.caching import Counted, assert_whole, calls, expected, files, once
from tests.streams import assert_same, epochs

SMALL = [Threads(3), Processes(3)]


def test_each_sample_is_made_once_over_all_epochs(backend, path, log):
    dataset, cache = Counted(30, log), Cache(path)
    with Loader(dataset, 4, shuffle=True, seed=5, workers=backend, cache=cache) as loader:
        got = epochs(loader, 4)
    assert calls(log) == once(30)
    assert_same(got, expected(Counted(30), cache, 4, shuffle=True, seed=5))
    assert_whole(path, 30)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("workers", [Inline(), *SMALL, Processes(2, start="fork")], ids=repr)
def test_also_where_the_dataset_is_so_small_that_epochs_overlap(workers, n, path, log):
    """Prefetch is then several epochs ahead, so many workers need one sample at the same time."""
    cache = Cache(path)
    with Loader(Counted(n, log), 2, shuffle=True, workers=workers, prefetch=4, cache=cache) as loader:
        got = epochs(loader, 12)
    assert calls(log) == once(n)
    assert_same(got, expected(Counted(n), cache, 12, 2, shuffle=True))


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2), Processes(1, start="spawn")], ids=repr)
def test_the_next_run_uses_it_again_and_makes_nothing(workers, path, log):
    cache = Cache(path)
    with Loader(Counted(20, log), 4, workers=Processes(2), cache=cache) as loader:
        first = epochs(loader, 1)
    log.unlink()
    with Loader(Counted(20, log), 4, workers=workers, cache=cache) as loader:
        again = epochs(loader, 2)
    assert calls(log) == {}
    assert_same(again, [*first, *first])


def test_a_run_that_ended_early_has_left_what_it_made(path, log):
    with Loader(Counted(20, log), 4, cache=Cache(path)) as loader:
        next(iter(loader))
    assert calls(log) == once(4)
    with Loader(Counted(20, log), 4, workers=2, cache=Cache(path)) as loader:
        epochs(loader, 2)
    assert calls(log) == once(20)


def test_without_refresh_it_is_kept_for_loaders_with_any_seed(path, log):
    cache = Cache(path)
    for seed in (0, 7):
        with Loader(Counted(20, log), 4, shuffle=True, seed=seed, workers=2, cache=cache) as loader:
            assert_same(epochs(loader, 1), expected(Counted(20), cache, 1, shuffle=True, seed=seed))
    assert calls(log) == once(20)


@pytest.mark.parametrize("workers", [Inline(), *SMALL], ids=repr)
@pytest.mark.parametrize("make", [Counted, functools.partial(Counted, 20)], ids=["an object", "a factory"])
def test_a_dataset_may_be_given_as_an_object_or_as_what_makes_it(make, workers, path, log):
    dataset = make(20, log) if make is Counted else functools.partial(Counted, 20, log)
    with Loader(dataset, 4, workers=workers, cache=Cache(path)) as loader:
        assert_same(epochs(loader, 2), expected(Counted(20), Cache(path), 2))
    assert calls(log) == once(20)


@pytest.mark.parametrize("dataset", [Ragged(23), Growing(40), Rows(0)], ids=lambda dataset: type(dataset).__name__)
@pytest.mark.parametrize("workers", [Inline(), *SMALL], ids=repr)
def test_samples_of_any_form_and_size_and_none_at_all(dataset, workers, path):
    with Loader(dataset, None, shuffle=True, workers=workers, cache=Cache(path)) as loader:
        assert_same(epochs(loader, 3), expected(dataset, Cache(path), 3, None, shuffle=True))


def test_samples_are_asked_for_one_by_one(path):
    """What a sample is must not depend on which others were missing."""

    class Both(Gathering):
        def __getitem__(self, index):
            return self.data[index]

        def __getitems__(self, indices):
            raise AssertionError("__getitem__ should have been used")

    with Loader(Both(20), 4, cache=Cache(path)) as loader:
        assert [int(row[0]) for batch in loader for row in batch] == list(range(20))


# Nobody can write into the cache by mistake


def negate(samples):
    for sample in samples:
        sample["row"] *= -1
    return np.stack([sample["row"] for sample in samples])


@pytest.mark.parametrize("workers", [Inline(), *SMALL], ids=repr)
def test_a_collate_may_write_into_its_samples(workers, path):
    with Loader(Counted(12), 4, collate=negate, workers=workers, cache=Cache(path)) as loader:
        for _ in range(3):
            assert [int(row[0]) for batch in loader for row in batch] == [-k for k in range(12)]
    assert_whole(path, 12)


@pytest.mark.parametrize("workers", [Inline(), *SMALL], ids=repr)
def test_a_consumer_may_write_into_what_it_gets(workers, path):
    stamps = np.array([(k, float(k)) for k in range(12)], "i4,f8")
    for dataset in (Rows(12), stamps):
        where = path / str(dataset.__class__.__name__)
        with Loader(dataset, None, workers=workers, cache=Cache(where)) as loader:
            for _ in range(3):
                for index, sample in enumerate(loader):
                    assert sample[0] == index
                    sample[0] = 77
        assert_whole(where, 12)


def test_what_is_held_stays_as_it_is_when_the_cache_is_gone(path):
    with Loader(Counted(8), 4, workers=2, cache=Cache(path)) as loader:
        first = list(loader)
        (path / "all.samples").unlink()
        held = list(loader)
    assert_same(held, first)


# Shards, order, epochs


@pytest.mark.parametrize("workers", [Inline(), *SMALL], ids=repr)
def test_shards_share_one_cache(workers, path, log):
    cache, streams = Cache(path), []
    for shard in ((0, 2), (1, 2)):
        with Loader(Counted(20, log), 5, shard=shard, shuffle=True, workers=workers, cache=cache) as loader:
            streams.append(epochs(loader, 3))
        options = {"shard": shard, "shuffle": True}
        assert_same(streams[-1], expected(Counted(20), cache, 3, 5, **options))
    assert calls(log) == once(20)


@pytest.mark.parametrize("shuffle", [7, True])
def test_out_of_order_each_batch_comes_once(shuffle, path, log):
    with Loader(
        Counted(40, log), 4, shuffle=shuffle, in_order=False, workers=Processes(3), cache=Cache(path)
    ) as loader:
        for epoch in range(3):
            due = [batch["index"].tolist() for batch in expected(Counted(40), Cache(path), 3, shuffle=shuffle)[epoch]]
            assert sorted(batch["index"].tolist() for batch in loader) == sorted(due)
    assert calls(log) == once(40)


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_a_loop_that_is_broken_off_and_an_epoch_that_is_jumped_to(workers, path, log):
    cache = Cache(path)
    with Loader(Counted(20, log), 4, shuffle=True, workers=workers, cache=cache) as loader:
        for _ in loader:
            break
        loader.set_epoch(5)
        got = epochs(loader, 1)
    assert_same(got, expected(Counted(20), cache, 6, shuffle=True)[5:])
    assert calls(log) == once(20)


# Resume


@pytest.mark.parametrize("refresh_every", [None, 2])
@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_the_stream_goes_on_from_any_step(workers, refresh_every, path):
    """Some states lead back to a generation that is gone; its samples are made as they were."""

    def make(workers=workers):
        return Loader(Counted(10), 3, shuffle=True, workers=workers, cache=Cache(path, refresh_every))

    assert_resumable(make, epochs=3, steps=None if workers == Inline() else 4)


def test_a_state_goes_on_with_another_cache_or_none_left(path):
    def make(place):
        return Loader(Counted(20), 4, shuffle=True, cache=Cache(path / place, refresh_every=2))

    with make("one") as loader:
        whole = epochs(loader, 4)
    with make("two") as loader:
        epochs(loader, 2)
        next(iter(loader))
        state = loader.state_dict()
    with make("three") as loader:
        loader.load_state_dict(state)
        assert_same([list(loader)], [whole[2][1:]])


# The loader itself


def test_a_loader_with_a_cache_pickles_while_it_is_not_started(path, log):
    cache = Cache(path)
    made = pickle.loads(pickle.dumps(Loader(Counted(20, log), 4, workers=2, cache=cache)))
    with made as loader:
        assert_same(epochs(loader, 2), expected(Counted(20), cache, 2))
    assert calls(log) == once(20)


def test_a_path_is_meant_from_where_the_loader_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = Cache("here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Loader(Rows(8), 4, workers=2, cache=cache) as loader:
        epochs(loader, 1)
    assert files(tmp_path / "here") == ["all.samples"]


@pytest.mark.parametrize("workers", BACKENDS[:3], ids=repr)
def test_the_users_own_random_numbers_are_not_touched(workers, path):
    def draws():
        return random.random(), float(np.random.rand())

    random.seed(1), np.random.seed(1)
    undisturbed = [draws() for _ in range(2)]
    random.seed(1), np.random.seed(1)
    with Loader(Counted(8), 4, workers=workers, cache=Cache(path)) as loader:
        found = [draws()]
        epochs(loader, 2)
        found.append(draws())
    assert found == undisturbed


class Interrupted(Counted):
    """Ctrl-C comes at sample 9, the first time it is made."""

    def __getitem__(self, index):
        if index == 9 and not calls(self.noted_in)[9]:
            self.note(9)
            os.kill(os.getpid(), signal.SIGINT)
        return super().__getitem__(index)


def test_after_ctrl_c_in_the_middle_of_filling_it_goes_on(path, log):
    """Inline the dataset is interrupted itself. What it had made of that batch is made again, and nothing else is."""
    cache = Cache(path)
    with Loader(Interrupted(20, log), 4, cache=cache) as loader:
        got, iterator = [], iter(loader)
        with pytest.raises(KeyboardInterrupt):
            got.extend(iterator)
        assert len(got) == 2
        got.extend(iterator)
        assert_same([got, *epochs(loader, 1)], expected(Counted(20), cache, 2))
    assert calls(log) == once(20) + Counter([8, 9])
    assert_whole(path, 20)
