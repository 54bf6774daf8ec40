"""Samples that raise, kill, or hang: the others are kept as ever, and whoever waits for them is not to blame."""

from __future__ import annotations

import json
import os
import random
import threading
import time

import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from tests.stores.caching import Counted, assert_whole, calls, expected, once, verified
from tests.streams import assert_same, epochs

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:.*fork"),  # of JAX, if an earlier test has loaded it
]

N, BAD = 12, 5
EVER_S = 600
BACKENDS = [Inline(), Threads(2), Processes(2)]


class Failing(Counted):
    """One sample raises; the first time only, or always."""

    def __init__(self, n, log=None, times=10**9):
        super().__init__(n, log)
        self.times = times

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index == BAD and calls(self.noted_in)[BAD] <= self.times:
            raise ValueError(f"no sample {index}")
        return sample


class Unlucky(Counted):
    """Whether a sample fails is a matter of its random numbers."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if random.random() < 0.5:
            raise ValueError(f"bad luck, {index}")
        return sample


class Deadly(Counted):
    def __getitem__(self, index):
        if index == BAD:
            os._exit(3)
        return super().__getitem__(index)


def rows(stream):
    """Index and random numbers of each sample, epoch by epoch."""
    batches = [[zip(batch["index"].tolist(), batch["noise"].tolist(), strict=True) for batch in e] for e in stream]
    return [[row for batch in epoch for row in batch] for epoch in batches]


def due(path, count):
    """What comes where one sample is left out."""
    return [[row for row in epoch if row[0] != BAD] for epoch in rows(expected(Counted(N), Cache(path), count))]


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_a_sample_that_is_skipped_is_tried_again_each_epoch_and_the_others_are_kept(workers, path, log):
    with Loader(Failing(N, log), 4, workers=workers, on_error="skip", cache=Cache(path)) as loader:
        got = [[batch for batch in loader] for _ in range(3)]
        assert loader.stats().skipped == 3
        loader.close()
    assert rows(got) == due(path, 3)
    made = calls(log)
    assert made.pop(BAD) >= 3
    assert made == {k: 1 for k in range(N) if k != BAD}
    (found,) = verified(path)
    assert (found.sound, found.missing, found.damaged) == (N - 1, 1, [])


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_a_sample_that_works_the_next_time_is_kept_then(workers, path, log):
    with Loader(Failing(N, log, times=1), 4, workers=workers, on_error="skip", cache=Cache(path)) as loader:
        got = epochs(loader, 3)
    assert sum(len(epoch) for epoch in rows(got)) in (3 * N - 1, 3 * N), "it may be prefetched again in the same epoch"
    assert calls(log)[BAD] == 2
    assert_whole(path, N)


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_a_sample_that_raises_is_an_error_in_its_turn_and_the_epoch_goes_on(workers, path, log):
    with Loader(Failing(N, log), 4, workers=workers, cache=Cache(path)) as loader:
        for _ in range(2):
            batches = iter(loader)
            got = [next(batches)["index"].tolist()]
            with pytest.raises(ValueError, match="no sample 5"):
                next(batches)
            got += [batch["index"].tolist() for batch in batches]
            assert got == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert [calls(log)[k] for k in (0, 1, 2, 3, 8, 9, 10, 11)] == [1] * 8


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
@pytest.mark.parametrize("refresh_every", [None, 2])
def test_what_is_quarantined_can_be_made_again_as_it_was(refresh_every, workers, path, tmp_path):
    """It has the seed of the sample, as it belongs to no batch."""
    cache, file = Cache(path, refresh_every), tmp_path / "quarantine.jsonl"
    with Loader(Unlucky(20), 4, seed=3, workers=workers, on_error="quarantine", quarantine=file, cache=cache) as loader:
        good = rows([list(loader) for _ in range(4)])
    records = [json.loads(line) for line in file.read_text().splitlines()]
    bad = [sorted(r["index"] for r in records if r["epoch"] == epoch) for epoch in range(4)]
    for epoch in range(4):
        assert sorted([*(index for index, _ in good[epoch]), *bad[epoch]]) == list(range(20))
    assert bad[0] == bad[1]
    assert bad[2] == bad[3]
    assert (bad[0] == bad[2]) == (refresh_every is None)
    assert all(record["seed"] == cache.seed(3, record["epoch"], record["index"]) for record in records)


@pytest.mark.parametrize("start", ["nursery", "fork"])
def test_a_sample_that_kills_its_worker_is_left_out_and_the_others_are_kept(start, path):
    cache = Cache(path)
    with Loader(Deadly(N), 4, workers=Processes(2, start=start), on_error="skip", max_deaths=1, cache=cache) as loader:
        got = [[batch for batch in loader] for _ in range(2)]
    assert rows(got) == due(path, 2)
    (found,) = verified(path)
    assert (found.sound, found.missing, found.damaged) == (N - 1, 1, [])


# Hanging


class HangsOnce(Counted):
    """Sample 1 hangs the first time."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index == 1 and calls(self.noted_in)[1] == 1:
            time.sleep(EVER_S)
        return sample


@pytest.mark.parametrize("start", ["nursery", "fork"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_who_waits_for_a_worker_that_hangs_is_not_blamed(on_error, start, path, log, caplog):
    """Both workers need both samples, as the epochs overlap: one hangs over them and the other waits."""
    cache = Cache(path)
    with Loader(
        HangsOnce(2, log), 2, workers=Processes(2, start=start), timeout=0.4, on_error=on_error, cache=cache
    ) as loader:
        assert_same(epochs(loader, 4), expected(Counted(2), cache, 4, 2))
    (line,) = caplog.messages
    assert "more than 0.4 s while working on the batch" in line
    assert_whole(path, 2)


def test_a_thread_that_is_given_up_gives_its_claims_back_and_harms_nobody_later(path, log, caplog):
    hung, go_on = threading.Event(), threading.Event()

    class Hanging(Counted):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            if index == 1 and not hung.is_set():
                hung.set()
                go_on.wait(EVER_S)
                sample["row"] = sample["row"] - 1000
            return sample

    cache = Cache(path)
    with Loader(Hanging(6, log), 2, workers=Threads(2), timeout=0.3, cache=cache) as loader:
        got = epochs(loader, 3)
        go_on.set()
        for thread in threading.enumerate():
            if thread.name.startswith("stoker") and not thread.name.endswith(("0", "1")):
                thread.join()
        got += epochs(loader, 3)
    assert_same(got, expected(Counted(6), cache, 6, 2))
    assert len(caplog.messages) == 1
    for thread in threading.enumerate():
        if thread.name.startswith("stoker"):
            thread.join()
    assert_whole(path, 6)


def test_a_consumer_who_waits_for_another_program_is_freed_by_its_death(path, log):
    """It holds the claim on a sample that it never finishes."""
    ear, mouth = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(ear)

            def stuck(self, index):
                os.write(mouth, b".")
                time.sleep(EVER_S)

            Counted.__getitem__ = stuck
            next(iter(Loader(Counted(N), 4, cache=Cache(path))))
        finally:
            os._exit(0)
    os.close(mouth)
    assert os.read(ear, 1) == b"."
    killer = threading.Timer(0.2, os.kill, [pid, 9])
    killer.start()
    with Loader(Counted(N, log), 4, workers=2, cache=Cache(path)) as loader:
        assert_same(epochs(loader, 1), expected(Counted(N), Cache(path), 1))
    killer.join()
    os.waitpid(pid, 0)
    os.close(ear)
    assert calls(log) == once(N)
