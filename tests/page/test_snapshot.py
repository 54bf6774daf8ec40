"""A snapshot holds what the page shows, and can be JSON."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

import stoker
from stoker.observe.page.snapshot import BARS, resident_bytes, verdict
from tests.page.made_up import snapshot


@pytest.mark.parametrize(
    ("milliseconds", "station"),
    [
        ({"fetch": 20, "wait": 15}, "fetch"),
        ({"fetch": 2, "write": 30, "wait": 15}, "write"),
        ({"fetch": 2, "move": 30, "wait": 1}, "move"),
        ({"fetch": 20, "wait": 0}, "step"),
    ],
)
def test_the_bottleneck_is_what_ran_while_the_consumer_waited(milliseconds, station):
    found = verdict(snapshot(**milliseconds).stats)
    assert found["station"] == station
    assert found["sentence"]


def test_a_loader_that_only_counts_has_no_bottleneck():
    with stoker.Loader(np.arange(8), 2, observe=False) as loader:
        list(loader)
        told = loader._session.showing.observed.snapshot()
    assert verdict(told.stats)["station"] is None
    assert told.to_dict()["timeline"] == {"batches": [], "waits": []}


def test_a_snapshot_can_be_json_at_any_time_of_a_loaders_life():
    loader = stoker.Loader(np.arange(40.0), 2, workers=stoker.Threads(2))
    observed = loader._session.showing.observed
    phases = [observed.snapshot().phase]
    list(loader)
    phases.append(observed.snapshot().phase)
    loader.close()
    phases.append(observed.snapshot().phase)
    assert phases == ["not started", "running", "closed"]
    told = json.loads(json.dumps(observed.snapshot().to_dict(), allow_nan=False))
    assert told["stats"]["samples"] == 40
    assert told["title"] == "Loader(ndarray, batch_size=2, shuffle=False)"
    del loader
    assert observed.snapshot().stats.samples == 40


def test_the_deaths_of_workers_are_told_after_the_end():
    with stoker.Loader(np.arange(400.0), 2, workers=2) as loader:
        batches = iter(loader)
        next(batches)
        os.kill(loader.worker_pids[0], signal.SIGKILL)
        while not loader.stats().deaths:
            for _ in loader:
                pass
    told = loader._session.showing.observed.snapshot()
    assert (told.phase, told.stats.deaths) == ("closed", 1)


def test_the_deaths_of_workers_are_told_after_others_have_taken_over():
    dataset = [0] * 40
    with stoker.Loader(dataset, 2, workers=2) as loader:
        batches = iter(loader)
        next(batches)
        os.kill(loader.worker_pids[0], signal.SIGKILL)
        for _ in batches:
            pass
        dataset[0] = 1  # so that the next epoch needs new workers
        assert sum(int(batch.sum()) for batch in loader) == 1
        assert loader.stats().deaths == 1


def test_the_timeline_has_the_last_batches_on_one_axis_that_ends_with_the_last():
    timeline = snapshot(fetch=20, write=1, wait=5).to_dict()["timeline"]
    assert len(timeline["batches"]) == len(timeline["waits"]) == 50
    worker, epoch, position, samples, began, fetched, written, arrived, moves, moved = timeline["batches"][-1]
    assert (worker, epoch, position, samples) == (1, 0, 32 * 49, 32)
    assert [fetched - began, written - fetched, arrived - written, moved - moves] == pytest.approx([20, 1, 0, 0])
    assert timeline["waits"][-1] == [-5.0, 0.0]


def test_a_timeline_is_cut_where_the_page_would_be_too_large():
    with stoker.Loader(np.arange(3.0 * BARS), 1) as loader:
        list(loader)
        timeline = loader._session.showing.observed.snapshot().to_dict()["timeline"]
    assert len(timeline["batches"]) == BARS


def test_the_pace_is_what_was_delivered_in_its_time():
    pace = snapshot(wait=5, step=5).to_dict()["pace"]
    assert pace["seconds"][-1] == 0
    assert pace["samples"] == pytest.approx([3200.0] * len(pace["samples"]), rel=0.01)
    assert pace["waited"] == pytest.approx([0.5] * len(pace["waited"]), rel=0.01)


def test_live_snapshots_leave_out_what_the_page_knows_itself():
    told = {"sentence": "As before.", "station": None}
    live = snapshot().to_dict(told)
    assert (live["pace"], live["verdict"]) == (None, told)


def test_a_diagnosis_is_not_made_for_each_look_of_a_live_page(monkeypatch):
    made = []
    monkeypatch.setattr("stoker.observe.page.observed.verdict", lambda stats: made.append(stats.batches) or {})
    with stoker.Loader(np.arange(8), 2) as loader:
        observed = loader._session.showing.observed
        for _ in loader:
            observed.live()
        assert made == [1]
        monkeypatch.setattr("stoker.observe.page.observed._JUDGED_EVERY_S", 0)
        observed.live()
    assert made == [1, 4]


def test_memory_of_a_process_that_is_not_there_is_none():
    assert resident_bytes(2**30) == 0
