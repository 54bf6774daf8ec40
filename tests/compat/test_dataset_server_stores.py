"""``cache_setting`` and ``rotation_setting``: how often the dataset is asked, and what comes of it."""

from __future__ import annotations

import time
from collections import Counter
from itertools import chain

import pytest

from stoker import CacheError
from tests.compat.served import Noisy, Numbers, Told, make, pairs, told

N = 30


def make_told(tmp_path, **options):
    return make(N, 4, dataset_class=Told, params={"file": str(tmp_path / "told")}, **options)


class Sets(Numbers):
    def __getitem__(self, index):
        return {index}


@pytest.fixture
def cached(tmp_path):
    """A setting, with so many epochs."""
    return lambda epochs: {"prefix": tmp_path / "digits", "update_frequency": epochs}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_cache_that_is_never_updated_asks_for_each_sample_once(tmp_path, cached, workers, shuffle):
    options = {"cache_setting": cached(float("inf")), "shuffle": shuffle}
    with make_told(tmp_path, nb_worker=workers, **options) as loader:
        epochs = pairs(loader, 3)
    assert Counter(index for index, _ in told(tmp_path / "told")) == Counter(range(N))
    assert [Counter(epoch) for epoch in epochs] == [Counter(told(tmp_path / "told"))] * 3
    assert (epochs[0] == epochs[1]) == (not shuffle)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits_cache", "told"]


def test_the_next_run_asks_for_nothing(tmp_path, cached):
    epochs = []
    for _ in range(2):
        with make_told(tmp_path, cache_setting=cached(float("inf"))) as loader:
            epochs += pairs(loader)
    assert epochs[0] == epochs[1]
    assert len(told(tmp_path / "told")) == N


@pytest.mark.parametrize("workers", [1, 3])
def test_every_few_epochs_all_samples_are_made_anew(tmp_path, cached, workers):
    with make_told(tmp_path, nb_worker=workers, cache_setting=cached(2), max_queue_size=1) as loader:
        epochs = pairs(loader, 6)
    assert epochs[0] == epochs[1]
    assert epochs[2] == epochs[3]
    assert epochs[4] == epochs[5]
    made = Counter(told(tmp_path / "told"))
    for generation in (epochs[0], epochs[2], epochs[4]):
        assert [index for index, _ in generation] == list(range(N))
        assert [made[sample] for sample in generation] == [1] * N, "a sample was made twice, or never"
    assert len(set(chain(epochs[0], epochs[2], epochs[4]))) == 3 * N
    assert len(list((tmp_path / "digits_cache").glob("*.samples"))) <= 2


def test_batches_are_the_same_for_any_number_of_workers(tmp_path, cached):
    streams = []
    for workers in (1, 3):
        setting = {"prefix": tmp_path / f"with {workers}", "update_frequency": 2}
        with make(N, 4, workers, Noisy, shuffle=True, cache_setting=setting) as loader:
            streams.append(pairs(loader, 4))
    assert streams[0] == streams[1]


def test_workers_that_wait_for_a_slow_consumer_do_not_keep_old_samples(tmp_path, cached):
    """A generation that somebody has open cannot go, and without room for a new one each epoch would be made anew."""
    with make_told(tmp_path, nb_worker=5, cache_setting=cached(2), max_queue_size=1) as loader:
        for epoch in range(12):
            for _ in loader:
                time.sleep(0.005 * (epoch % 2))
    made = Counter(told(tmp_path / "told"))
    assert max(made.values()) == 1
    assert 6 * N <= len(made) <= 7 * N


def test_another_datasets_cache_is_not_used(tmp_path, cached):
    with make(10, cache_setting=cached(2)) as loader:
        list(loader)
    with pytest.raises(CacheError, match=r"(?s)another dataset.*Numbers\(n=10\).*Numbers\(n=11\)") as caught:
        make(11, cache_setting=cached(2))
    assert str(tmp_path / "digits_cache") in str(caught.value)


def test_samples_that_only_pickle_can_keep_need_the_users_word(tmp_path, cached):
    with make(4, 2, dataset_class=Sets, cache_setting=cached(2)) as loader, pytest.raises(TypeError, match="pickle"):
        list(loader)
    setting = {"prefix": tmp_path / "pickled", "update_frequency": 2, "codec": "pickle"}
    with make(4, 2, dataset_class=Sets, cache_setting=setting) as loader:
        assert [list(loader) for _ in range(2)] == [[[{0}, {1}], [{2}, {3}]]] * 2


MEMORY = {"medium": "memory", "rotation": 3}
DISK = {"medium": "disk", "rotation": 3, "size": 8, "prefix": "{folder}/samples"}


@pytest.fixture(params=[MEMORY, MEMORY | {"size": 8}, DISK], ids=["memory", "memory, size", "disk"])
def rotated(request, tmp_path):
    """A setting. On disk, in a folder where nothing may be seen."""
    (tmp_path / "scratch").mkdir()
    setting = dict(request.param)
    if "prefix" in setting:
        setting["prefix"] = setting["prefix"].format(folder=tmp_path / "scratch")
    return setting


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_sample_is_made_once_and_comes_so_many_times(tmp_path, rotated, workers, shuffle):
    options = {"rotation_setting": rotated, "shuffle": shuffle, "nb_worker": workers}
    with make_told(tmp_path, **options) as loader:
        assert len(loader) == -(-N * 3 // 4)
        epochs = pairs(loader, 2)
        assert list((tmp_path / "scratch").iterdir()) == []
    made = Counter(told(tmp_path / "told"))
    for epoch in epochs:
        assert Counter(index for index, _ in epoch) == Counter({index: 3 for index in range(N)})
        assert set(Counter(epoch).values()) == {3}, "a sample was made twice"
        assert [made[sample] for sample in set(epoch)] == [1] * N
    assert not set(epochs[0]) & set(epochs[1]), "the next epoch has samples of its own"


def test_so_many_rotate_at_the_same_time(tmp_path):
    setting = {"medium": "disk", "rotation": 4, "size": 6, "prefix": tmp_path / "x"}
    with make(N, 5, 2, Noisy, rotation_setting=setting, shuffle=True) as loader:
        (epoch,) = pairs(loader)
    blocks = [Counter(epoch[start : start + 24]) for start in range(0, 4 * N, 24)]
    assert [sorted(block.values()) for block in blocks] == [[4] * 6] * 5


def test_rotated_batches_are_the_same_for_any_number_of_workers(rotated):
    streams = []
    for workers in (1, 3):
        with make(N, 4, workers, Noisy, shuffle=True, rotation_setting=rotated) as loader:
            streams.append(pairs(loader, 2))
    assert streams[0] == streams[1]


def test_breaking_off_a_rotation_begins_the_next_epoch(tmp_path, rotated):
    with (
        make(N, 4, 2, Noisy, rotation_setting=rotated) as loader,
        make(N, 4, 1, Noisy, rotation_setting=rotated) as whole,
    ):
        next(iter(loader))
        assert pairs(loader) == pairs(whole, 2)[1:]
