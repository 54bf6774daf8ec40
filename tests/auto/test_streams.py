"""The stream is the same while workers come and go; and so is all that a loader promises beside it."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from collections import Counter

import numpy as np
import pytest

import stoker
from stoker import Auto, Cache, Inline, Loader, Rotation
from tests.auto.works import squared
from tests.datasets import Augmented, Rows
from tests.streams import assert_same, epochs, kept

SAMPLES, BATCH = 300, 5


@pytest.fixture
def expected():
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Inline()) as loader:
        return epochs(loader, 3)


def test_the_same_stream_while_workers_come_and_go(restless):
    """Contract: the same stream for any number of workers. Epochs are read until workers have come and gone."""
    pids, numbers = set(), set()
    with (
        Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=4)) as loader,
        Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Inline()) as same,
    ):
        while loader.epoch < 3 or len(numbers) < 2 or len(pids) <= 4:
            assert loader.epoch < 100, f"{len(pids)} workers in all, and {numbers} at a time"
            epoch = []
            for batch in loader:
                epoch.append(kept(batch))
                pids.update(loader.worker_pids)
                numbers.add(loader.stats().workers)
            assert_same([epoch], epochs(same, 1))


def test_each_batch_just_once_in_any_order(restless, expected):
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=4), in_order=False) as loader:
        got = epochs(loader, 3)
    assert [Counter(map(pickle.dumps, epoch)) for epoch in got] == [
        Counter(map(pickle.dumps, epoch)) for epoch in expected
    ]


def test_the_same_stream_though_workers_are_killed_meanwhile(restless, expected):
    """Contract: exactly once, whatever dies: also a worker that is coming, resting or leaving."""
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=4), max_deaths=100) as loader:
        got = []
        for _ in range(3):
            epoch = []
            for number, batch in enumerate(loader):
                epoch.append(kept(batch))
                victims = loader.worker_pids if number % 5 == 4 else []
                if victims:
                    with contextlib.suppress(ProcessLookupError):  # it was about to be retired
                        os.kill(victims[number % len(victims)], signal.SIGKILL)
            got.append(epoch)
    assert_same(got, expected)


def test_a_resumed_stream_goes_on_where_it_was(restless, expected):
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=4)) as loader:
        batches = iter(loader)
        first = [kept(next(batches)) for _ in range(23)]
        state = loader.state_dict()
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=3)) as loader:
        loader.load_state_dict(state)
        rest = [kept(batch) for batch in loader]
    assert_same([first + rest], expected[:1])


def test_epochs_that_are_broken_off_and_begun_again(restless, expected):
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=4)) as loader:
        for taken in (1, 7, 30):
            loader.set_epoch(1)
            batches = iter(loader)
            assert_same([[kept(next(batches)) for _ in range(taken)]], [expected[1][:taken]])


def test_a_stream_of_items(restless):
    with stoker.stream(squared, range(200), workers=Auto(most=4)) as results:
        assert [int(one) for one in results] == [item * item for item in range(200)]


@pytest.mark.parametrize("kept_by", ["cache", "rotation"])
def test_samples_that_are_kept(restless, tmp_path, kept_by):
    def options(name):
        return {"cache": Cache(tmp_path / name)} if kept_by == "cache" else {"rotation": Rotation(2, size=40)}

    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Inline(), **options("inline")) as loader:
        expected = epochs(loader, 2)
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers=Auto(most=4), **options("auto")) as loader:
        assert_same(epochs(loader, 2), expected)


def test_batches_that_are_held_do_not_change(restless):
    with Loader(Rows(SAMPLES), BATCH, workers=Auto(most=4)) as loader:
        batches = list(loader)
    assert np.concatenate(batches)[:, 0].tolist() == list(range(SAMPLES))


def test_a_dataset_that_changes_between_epochs(restless):
    dataset = Rows(SAMPLES)
    with Loader(dataset, BATCH, workers=Auto(most=4)) as loader:
        before = np.concatenate(list(loader))
        dataset.data = dataset.data + 1
        assert np.array_equal(np.concatenate(list(loader)), before + 1)


def test_a_loader_without_a_controller_of_ours_is_the_same_too(expected):
    with Loader(Augmented(SAMPLES), BATCH, shuffle=True, workers="auto") as loader:
        assert_same(epochs(loader, 3), expected)
