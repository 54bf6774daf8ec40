"""``refresh_every``: samples are made anew, the old generation goes, and the disk never holds more than two."""

from __future__ import annotations

import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.plan import Plan
from stoker.stores.cache_store import folder_of, open_cache
from tests.stores.caching import Counted, Watch, assert_whole, calls, expected, files, once
from tests.streams import assert_same, epochs


def content(stream):
    """What is random in each sample of each epoch."""
    return [{int(k): row[0] for b in epoch for k, row in zip(b["index"], b["noise"], strict=True)} for epoch in stream]


def test_each_generation_is_kept_for_so_many_epochs_and_then_made_anew(backend, path, log):
    cache = Cache(path, refresh_every=3)
    with Loader(Counted(60, log), 4, shuffle=True, seed=2, workers=backend, cache=cache) as loader:
        got = epochs(loader, 7)
        loader.close()  # what was prefetched may be of the next generation
    assert_same(got, expected(Counted(60), cache, 7, shuffle=True, seed=2))
    kept = content(got)
    assert kept[0] == kept[1] == kept[2]
    assert kept[3] == kept[4] == kept[5]
    assert all(len({one[k] for one in (kept[0], kept[3], kept[6])}) == 3 for k in range(60)), "each sample is new"
    assert calls(log) == {k: 3 for k in range(60)}


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_the_old_generation_is_dropped_when_nobody_reads_it(workers, path):
    with Loader(Counted(60), 2, workers=workers, cache=Cache(path, refresh_every=2)) as loader:
        for epoch in range(6):
            batches = iter(loader)
            for _ in range(20):  # the workers are well in this epoch now
                next(batches)
            assert files(path)[-1:] == [f"seed0-epoch{epoch - epoch % 2}.samples"]
            assert len(files(path)) == 1
            for _ in batches:
                pass


def test_when_a_generation_has_just_begun_the_old_one_is_still_there(path, log):
    """A run that ends there and is started again at its last state may need it."""
    with Loader(Counted(40, log), 4, workers=2, cache=Cache(path, refresh_every=2)) as loader:
        epochs(loader, 1)
        batches = iter(loader)
        for _ in range(9):
            next(batches)
        state = loader.state_dict()
        next(batches)
    log.unlink()
    with Loader(Counted(40, log), 4, workers=2, cache=Cache(path, refresh_every=2)) as loader:
        loader.load_state_dict(state)
        next(iter(loader))
        made = calls(log)
    assert files(path)[0] == "seed0-epoch0.samples"
    assert max(made.values(), default=0) <= 1, "of the next generation, ahead"


@pytest.mark.parametrize("n", [3, 24])
@pytest.mark.parametrize("workers", [Threads(4), Processes(4)], ids=repr)
def test_there_are_never_more_than_two(workers, n, path):
    """Also where prefetch reaches over several generations."""
    cache = Cache(path, refresh_every=2)
    with Watch(lambda: len(files(path))) as watch:
        with Loader(Counted(n), 2, shuffle=True, workers=workers, prefetch=4, cache=cache) as loader:
            got = epochs(loader, 20)
    assert watch.most <= 2
    assert_same(got, expected(Counted(n), cache, 20, 2, shuffle=True))


def test_loaders_with_other_seeds_have_generations_of_their_own_and_still_never_more_than_two(path):
    cache = Cache(path, refresh_every=2)
    loaders = [Loader(Counted(12), 4, seed=seed, cache=cache) for seed in range(4)]
    try:
        got = [epochs(loader, 1) for loader in loaders]
        assert len(files(path)) <= 2
        got = [one + epochs(loader, 3) for one, loader in zip(got, loaders, strict=True)]
        assert len(files(path)) <= 2
    finally:
        for loader in loaders:
            loader.close()
    for seed, stream in enumerate(got):
        assert_same(stream, expected(Counted(12), cache, 4, seed=seed))


@pytest.mark.parametrize("never", [None, float("inf")])
def test_it_may_never_be_refreshed(never, path, log):
    with Loader(Counted(12, log), 4, workers=2, cache=Cache(path, refresh_every=never)) as loader:
        stream = epochs(loader, 9)
    assert content(stream) == [content(stream)[0]] * 9
    assert calls(log) == once(12)
    assert files(path) == ["all.samples"]


@pytest.mark.parametrize("workers", [Inline(), Processes(2)], ids=repr)
def test_the_next_run_uses_the_generation_of_its_epoch(workers, path, log):
    cache = Cache(path, refresh_every=4)
    with Loader(Counted(20, log), 4, workers=workers, cache=cache) as loader:
        epochs(loader, 2)
    assert calls(log) == once(20)
    with Loader(Counted(20, log), 4, workers=workers, cache=cache) as loader:
        loader.set_epoch(2)
        assert_same(epochs(loader, 1), expected(Counted(20), cache, 3)[2:])
    assert calls(log) == once(20)
    assert_whole(path, 20)


@pytest.mark.parametrize("wrong", [0, 1, -3, 2.5, "3", True, float("nan")])
def test_a_number_of_epochs_that_makes_no_sense_is_refused(wrong, path):
    with pytest.raises((ValueError, TypeError), match="refresh_every"):
        Cache(path, refresh_every=wrong)


def test_a_batch_of_the_old_generation_that_comes_late_still_finds_it(path):
    """As when a worker is given what was taken back from another that was too slow."""
    cache, dataset, made = Cache(path, refresh_every=2), Counted(12), []
    plan = Plan(12, 2)
    store = open_cache(cache, folder_of(cache, dataset), 3, plan, -1, copies=False, tell=print)

    def fetch(epoch, start):
        batch = plan.batch(epoch, start)
        keys = store.keys(batch, plan.indices(batch))
        store.fetch(epoch, keys, lambda key: made.append((epoch, key)) or dataset[key], lambda: None)

    for epoch, start in [(1, 0), (1, 10), (2, 0), (1, 10), (2, 2)]:
        fetch(epoch, start)
    assert made == [(1, 0), (1, 1), (1, 10), (1, 11), (2, 0), (2, 1), (2, 2), (2, 3)]
    assert len(files(path)) == 2
    fetch(2, 6)
    assert files(path) == ["seed0-epoch2.samples"]
    store.close()
