"""Batches of chunk files arrive on their device ahead of time, as all others do."""

from __future__ import annotations

import gc
import json
import random
import threading
import time

import numpy as np
import pytest

from stoker import Chunks, Loader, Processes, Threads
from tests.devices.fake import FakeDevice
from tests.streams import assert_same, epochs

ROWS = [7, 3, 0, 12, 5, 9]  # in batches of 4: some are a group's own, some joined of several files, the last is full
WORKERS = [Threads(2), Processes(2)]


@pytest.fixture
def folder(tmp_path):
    first = 0
    for number, rows in enumerate(ROWS):
        np.save(tmp_path / f"{number}.npy", np.repeat(np.arange(first, first + rows)[:, None], 100, axis=1))
        first += rows
    return tmp_path


def make(folder, device: FakeDevice | None = None, workers=0, **options) -> Loader:
    if device is not None:
        options |= {"device": device, "to_device": device.to_device}
    return Loader(Chunks(folder, interleave=1), 4, workers=workers, **options)


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_a_batch_is_moved_before_the_consumer_asks_for_it(folder, workers):
    device = FakeDevice()
    with make(folder, device, workers, max_on_device=3) as loader:
        loader.warm_up()
        device.wait_for(3)
        for _ in loader:
            device.handed_over += 1
            device.wait_for(device.handed_over + 3)
    assert device.most_ahead <= 4  # the one that is in the consumer's hands was not counted yet
    assert device.threads == {"stoker-conveyor"}


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_the_lease_is_held_until_the_copy_has_finished(folder, workers, shuffle):
    device = FakeDevice(seconds=0.005)
    how = {"shuffle": shuffle}
    with make(folder, device, workers, prefetch=1, **how) as loader, make(folder, **how) as oracle:
        assert_same(epochs(loader, 3), epochs(oracle, 3))


def test_memory_is_free_again_when_the_batches_are_gone(folder):
    """Groups that were moved leave no slot behind: as many are used after ten epochs as after two."""
    device = FakeDevice()
    with make(folder, device, Threads(2)) as loader:
        epochs(loader, 2)
        gc.collect()
        slots = loader.stats().slots
        epochs(loader, 8)
        assert loader.stats().slots <= slots + 1


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"drop_last": True}, {"shard": (1, 2)}], ids=repr)
def test_what_was_moved_ahead_does_not_count_as_taken(folder, options):
    with make(folder, **options) as oracle:
        whole = [batch.tolist() for epoch in epochs(oracle, 2) for batch in epoch]
    device = FakeDevice()
    with make(folder, device, Threads(2), max_on_device=3, **options) as loader:
        got, states = [], [loader.state_dict()]
        for _ in range(2):
            for batch in loader:
                got.append(batch.tolist())
                states.append(json.loads(json.dumps(loader.state_dict())))
    assert got == whole
    for taken, state in enumerate(states[: len(whole)]):
        with make(folder, FakeDevice(), Threads(2), **options) as loader:
            loader.load_state_dict(state)
            rest = [batch.tolist() for batch in loader]
            rest += [batch.tolist() for batch in loader] if taken + len(rest) < len(whole) else []
        assert rest == whole[taken:]


def test_an_error_on_the_way_comes_in_its_turn_and_its_batch_is_passed_over(folder):
    with make(folder) as oracle:
        whole = [batch.tolist() for batch in oracle]

    def fails(batch):
        if batch.tolist() == whole[4]:
            raise ValueError("no")
        return batch.copy()

    with make(folder, workers=Threads(2), to_device=fails) as loader:
        got, iterator = [], iter(loader)
        for _ in range(4):
            got.append(next(iterator).tolist())
        with pytest.raises(ValueError, match="no"):
            next(iterator)
        state = loader.state_dict()
        got += [batch.tolist() for batch in iterator]
        assert got == whole[:4] + whole[5:]
    with make(folder) as loader:
        loader.load_state_dict(state)
        assert [batch.tolist() for batch in loader] == whole[4:]


def test_a_collate_of_ones_own_over_loose_samples_leaves_the_consumers_random_numbers_alone(folder):
    """It draws from the consumer's generators, whose state is put back: so it is called in the consumer's thread."""
    threads, moving = set(), threading.Lock()

    def collate(samples):
        threads.add(threading.current_thread().name)
        return np.stack(samples)[:, 0] + random.randrange(10**6) * 100

    def moved(batch):
        assert moving.acquire(blocking=False), "two are moved at the same time"
        time.sleep(0.002)
        moving.release()
        return batch.copy()

    with make(folder, collate=collate) as oracle:
        whole = [batch.tolist() for batch in oracle]
    threads.clear()
    random.seed(1)
    expected = [random.random() for _ in whole]
    random.seed(1)
    drawn, got = [], []
    with make(folder, workers=Threads(2), collate=collate, to_device=moved) as loader:
        for batch in loader:
            got.append(batch.tolist())
            drawn.append(random.random())
    assert (got, drawn) == (whole, expected)
    assert "MainThread" in threads
    assert "stoker-conveyor" not in threads


def test_files_that_were_added_come_with_the_next_epoch(folder):
    device = FakeDevice()
    with make(folder, device, Threads(2)) as loader:
        first = sum(len(batch) for batch in loader)
        np.save(folder / "9.npy", np.full((8, 100), -1))
        assert sum(len(batch) for batch in loader) == first + 8
