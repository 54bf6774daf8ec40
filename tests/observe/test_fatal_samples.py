"""Samples that kill their worker, or make it hang, are searched for and left out, just they."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter

import numpy as np
import pytest

from stoker import Loader, Processes, Threads, TooManyErrors
from tests.datasets import Augmented, Rows
from tests.observe.faults import Fatal, FatalTogether, but, lines, take, taken
from tests.streams import assert_same, epochs

PLACES = [("nursery", "skip"), ("nursery", "quarantine"), ("fork", "quarantine"), ("spawn", "quarantine")]


@pytest.mark.parametrize(("start", "on_error"), PLACES)
@pytest.mark.parametrize("batch_size", [1, None, 8])
def test_a_deadly_sample_is_left_out_and_no_other(start, batch_size, on_error, tmp_path):
    file = tmp_path / "q.jsonl" if on_error == "quarantine" else None
    workers = Processes(2, start=start)
    with Loader(Fatal(deadly=[13]), batch_size, workers=workers, on_error=on_error, quarantine=file) as loader:
        assert taken(loader) == but(13)
        assert loader.stats().skipped == 1
    if file:
        (record,) = lines(file)
        assert (record["index"], record["epoch"]) == (13, 0)
        assert record["error"].startswith("WorkerDied: it killed its worker by exit code 3")


@pytest.mark.parametrize(("start", "on_error"), PLACES)
@pytest.mark.parametrize("batch_size", [1, None, 8])
def test_a_sample_that_hangs_is_left_out_and_no_other(start, batch_size, on_error, tmp_path):
    file = tmp_path / "q.jsonl" if on_error == "quarantine" else None
    settings = {"workers": Processes(2, start=start), "timeout": 0.5, "max_deaths": 1}
    with Loader(Fatal(endless=[13]), batch_size, on_error=on_error, quarantine=file, **settings) as loader:
        assert taken(loader) == but(13)
        assert loader.stats().skipped == 1
    if file:
        (record,) = lines(file)
        assert (record["index"], record["epoch"]) == (13, 0)
        assert record["error"].startswith("WorkerDied: it killed its worker by a timeout: it took more than 0.5 s")
        assert "in __getitem__" in record["traceback"]


def test_a_sample_that_hangs_in_a_thread_is_left_out():
    release = threading.Event()

    class Waiting(Rows):
        def __getitem__(self, index):
            if index == 13:
                release.wait()
            return self.data[index]

    with Loader(Waiting(40), 8, workers=Threads(2), timeout=0.5, max_deaths=1, on_error="skip") as loader:
        assert taken(loader) == but(13)
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("stoker-worker"):
            thread.join()


COMPANY = {
    "two in one batch": {"deadly": [9, 13]},
    "two neighbours": {"deadly": [12, 13]},
    "the first and the last of a batch": {"deadly": [8, 15]},
    "a whole batch": {"deadly": range(8, 16)},
    "one in each of two batches": {"deadly": [5, 21]},
    "the very last": {"deadly": [39]},
    "with one that raises": {"deadly": [13], "bad": [9, 14]},
    "with one that hangs": {"deadly": [13], "endless": [10]},
}


@pytest.mark.parametrize("company", COMPANY)
@pytest.mark.parametrize("dataset", [Fatal, FatalTogether])
def test_deadly_samples_in_company(company, dataset, tmp_path):
    file = tmp_path / "q.jsonl"
    faults = COMPANY[company]
    left_out = sorted(index for indices in faults.values() for index in indices)
    settings = {"on_error": "quarantine", "quarantine": file, "max_deaths": 1, "timeout": 1.0}
    with Loader(dataset(**faults), 8, workers=Processes(2), **settings) as loader:
        assert taken(loader) == but(*left_out)
        assert loader.stats().skipped == len(left_out)
    assert sorted(record["index"] for record in lines(file)) == left_out
    raised = [record["index"] for record in lines(file) if not record["error"].startswith("WorkerDied")]
    assert raised == list(faults.get("bad", []))


@pytest.mark.parametrize("in_order", [True, False])
def test_a_deadly_sample_in_the_midst_of_a_long_run_of_small_batches(in_order):
    """Batches that are quick to make go to a worker several at a time."""
    dataset = Fatal(4000, deadly=[3001, 3500])
    with Loader(dataset, 4, workers=Processes(2), on_error="skip", in_order=in_order) as loader:
        found = taken(loader)
    assert (found if in_order else sorted(found)) == but(3001, 3500, n=4000)


def test_deadly_samples_are_left_out_of_each_epoch_and_of_shuffled_ones(tmp_path):
    file = tmp_path / "q.jsonl"
    with Loader(Rows(40), 8, shuffle=True) as oracle:
        expected = [[index for index in taken(oracle) if index not in (13, 27)] for _ in range(2)]
    settings = {"on_error": "quarantine", "quarantine": file, "max_deaths": 1}
    with Loader(Fatal(deadly=[13, 27]), 8, shuffle=True, workers=Processes(2), **settings) as loader:
        assert [taken(loader) for _ in range(2)] == expected
    assert Counter((r["index"], r["epoch"]) for r in lines(file)) == Counter((i, e) for i in (13, 27) for e in (0, 1))


def test_deadly_samples_count_for_the_limit():
    with Loader(Fatal(deadly=[9, 13], bad=[3]), 8, workers=Processes(2), on_error="skip", max_errors=2) as loader:
        with pytest.raises(TooManyErrors, match=r"3 of 40 samples.*2 may.*WorkerDied: it killed its worker"):
            list(loader)


GUILTY = {
    "when all are there": lambda found: len(found) == 8 and 8 in found,
    "two together": lambda found: {9, 13} <= found,
}


@pytest.mark.parametrize("guilty", GUILTY)
def test_a_batch_that_kills_only_as_a_whole_is_left_out_as_a_whole(guilty, tmp_path):
    kills = GUILTY[guilty]

    def collate(samples):
        if kills({int(sample[0]) for sample in samples}):
            os._exit(5)
        return np.stack(samples)

    file = tmp_path / "q.jsonl"
    settings = {"on_error": "quarantine", "quarantine": file, "collate": collate, "max_deaths": 2}
    with Loader(Rows(40), 8, workers=Processes(2), **settings) as loader:
        assert taken(loader) == but(*range(8, 16))
        assert loader.stats().skipped == 8
    assert [record["index"] for record in lines(file)] == list(range(8, 16))
    assert all(record["error"].endswith(", together with the others of its batch") for record in lines(file))


class FatalAugmented(Augmented):
    """Random numbers, and two deadly samples."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index in (5, 21):
            os._exit(3)
        return sample


def test_the_stream_is_the_same_whoever_dies_and_after_a_resume_at_each_step():
    """A deadly sample draws no random numbers: those after it in its batch get them, everywhere alike."""

    def make(workers):
        return Loader(FatalAugmented(30), 4, shuffle=True, workers=workers, on_error="skip", max_deaths=1)

    with make(Processes(1)) as loader:
        stream = [batch for epoch in epochs(loader, 2) for batch in epoch]
    states = []
    with make(Processes(3, start="fork")) as loader:
        got = []
        for batch in loader:
            got.append({key: value.copy() for key, value in batch.items()})
            states.append(json.loads(json.dumps(loader.state_dict())))
        assert_same(got, stream[: len(got)])
    with make(Processes(2)) as loader:
        for step, state in enumerate(states, 1):
            loader.load_state_dict(state)
            assert_same(take(loader, 2), stream[step : step + 2])
