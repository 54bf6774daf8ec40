"""Traces: what each batch went through, in the form that Perfetto reads."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import signal
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from stoker.observe.meter import WorkerDeath
from stoker.observe.trace_events import Timeline, events
from tests.observe.chrome_traces import check, read, spans, track_names

BACKENDS = [stoker.Inline(), stoker.Threads(2), stoker.Processes(2)]


class Fragile:
    """Sample 5 cannot be made."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index):
        if index == 5:
            raise ValueError("broken")
        return np.full(10, index)


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_each_batch_has_its_spans_and_an_arrow_from_its_making_to_its_hand_over(workers, tmp_path):
    with stoker.Loader(np.arange(60).reshape(30, 2), 4, workers=workers) as loader:
        with loader.trace(tmp_path / "trace.json") as trace:
            for _ in range(2):
                assert len(list(loader)) == 8
    found = read(tmp_path / "trace.json")
    for name in ("fetch", "write", "wait"):
        positions = Counter((span["args"]["epoch"], span["args"]["position"]) for span in spans(found, name))
        assert positions == Counter((epoch, 4 * k) for epoch in range(2) for k in range(8)), name
    assert len(spans(found, "step")) == 15
    assert sum(event["ph"] == "s" for event in found) == 15, "of all whose step is known"
    assert {span["args"]["samples"] for span in spans(found, "fetch")} == {4, 2}
    assert sum(span["args"]["bytes"] for span in spans(found, "write")) == 2 * 60 * 8
    assert "1 loaders" in repr(trace)


def test_there_is_a_track_for_each_worker_and_one_for_the_consumer(tmp_path):
    with stoker.Loader(np.arange(64), 4, workers=stoker.Threads(2), prefetch=1) as loader:
        list(loader)
        loader.trace(tmp_path / "trace.json")
    found = read(tmp_path / "trace.json")
    names = track_names(found)
    assert list(names.values()) == ["consumer", "worker 0", "worker 1"]
    of = {name: {names[span["pid"], span["tid"]] for span in spans(found, name)} for name in ("wait", "step", "fetch")}
    assert of["wait"] == of["step"] == {"consumer"}
    assert of["fetch"] <= {"worker 0", "worker 1"}


def test_what_the_bridge_does_is_within_the_consumers_wait_or_on_the_track_of_the_device(tmp_path):
    own = {"to": lambda batch: batch + 1}
    ahead = {"device": "there", "to_device": lambda batch, device: batch + 1}
    for name, options in (("own", own), ("ahead", ahead)):
        with stoker.Loader(np.arange(32), 4, workers=stoker.Threads(2), **options) as loader:
            with loader.trace(tmp_path / name):
                list(loader)
        found = read(tmp_path / name)
        names = track_names(found)
        moves = spans(found, "move")
        assert len(moves) == 8
        expected = "consumer" if name == "own" else "device thread"
        assert {names[move["pid"], move["tid"]] for move in moves} == {expected}


def test_without_a_block_the_last_batches_are_written_and_later_ones_are_not_kept(tmp_path):
    with stoker.Loader(np.arange(5000), 1) as loader:
        list(loader)
        trace = loader.trace(tmp_path / "trace.json")
        assert len(spans(read(tmp_path / "trace.json"), "fetch")) == 4096
        assert loader._session._meter._recording._kept == []
        list(loader)
    trace.write()  # also after close
    assert {span["args"]["epoch"] for span in spans(read(tmp_path / "trace.json"), "fetch")} == {1}


def test_a_block_records_all_of_it_and_nothing_before_or_after(tmp_path):
    with stoker.Loader(np.arange(5000), 1) as loader:
        list(loader)
        with contextlib.suppress(ZeroDivisionError), loader.trace(tmp_path / "trace.json"):
            list(loader)
            list(loader)
            raise ZeroDivisionError
        list(loader)
        assert loader._session._meter._recording._kept == []
    found = spans(read(tmp_path / "trace.json"), "wait")
    assert Counter(span["args"]["epoch"] for span in found) == {1: 5000, 2: 5000}


def test_several_loaders_and_streams_are_in_one_file(tmp_path):
    with stoker.Trace(tmp_path / "trace.json.gz") as trace:
        with stoker.Loader(np.arange(8), 2) as loader, stoker.stream(abs, range(6), workers=1) as stream:
            assert loader.trace(trace) is trace
            stream.trace(trace)
            stream.trace(trace)  # which changes nothing
            list(loader), list(stream)
        assert not (tmp_path / "trace.json.gz").exists()
    found = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"]
    check(found)
    groups = {event["pid"]: event["args"]["name"] for event in found if event["name"] == "process_name"}
    counts = Counter(groups[span["pid"]] for span in spans(found, "wait"))
    assert counts == {"stoker.Loader(ndarray, batch_size=2, shuffle=False)": 4, "stoker.stream(abs)": 6}


def test_batches_of_files_that_no_worker_makes_alone_are_in_it(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(map(str, range(40))))
    with stoker.Loader(stoker.Chunks(tmp_path / "a.txt"), 4, workers=stoker.Threads(1)) as loader:
        with loader.trace(tmp_path / "trace.json"):
            assert len(list(loader)) == 10
    assert len(spans(read(tmp_path / "trace.json"), "wait")) == 10


@pytest.mark.parametrize("batch_size", [4, 1])
def test_samples_that_are_left_out_leave_the_trace_in_form(batch_size, tmp_path):
    with stoker.Loader(Fragile(), batch_size, workers=stoker.Threads(2), on_error="skip") as loader:
        with loader.trace(tmp_path / "trace.json"):
            list(loader)
    assert len(spans(read(tmp_path / "trace.json"), "fetch")) == 24 // batch_size


def test_the_death_of_a_worker_is_an_instant_on_its_track(tmp_path):
    with stoker.Loader(np.arange(400), 4, workers=2) as loader:
        with loader.trace(tmp_path / "trace.json"):
            for number, _ in enumerate(loader):
                if number == 10:
                    os.kill(loader.worker_pids[0], signal.SIGKILL)
            for _ in loader:
                if loader.stats().deaths:
                    break
    found = read(tmp_path / "trace.json")
    names = track_names(found)
    instants = [event for event in found if event["ph"] == "i"]
    assert [(names[one["pid"], one["tid"]], one["name"]) for one in instants] == [("worker 0", "died: SIGKILL (-9)")]


def test_nothing_at_all_is_a_trace_too(tmp_path):
    with stoker.Loader(np.arange(0), 4, workers=stoker.Threads(1)) as loader:
        loader.trace(tmp_path / "unstarted")
        with loader.trace(tmp_path / "empty"):
            assert list(loader) == []
    assert spans(read(tmp_path / "unstarted")) == spans(read(tmp_path / "empty")) == []


def test_a_loader_that_measures_nothing_says_so(tmp_path):
    with stoker.Loader(np.arange(8), observe=False) as loader, pytest.raises(ValueError, match="observe=True"):
        loader.trace(tmp_path / "trace.json")


def test_a_file_that_cannot_be_written_is_an_error_before_the_block(tmp_path):
    with stoker.Loader(np.arange(8)) as loader, pytest.raises(OSError), loader.trace(tmp_path / "none" / "trace.json"):
        pytest.fail("not reached")


def test_a_loader_that_was_traced_and_not_started_can_be_pickled(tmp_path):
    with stoker.Loader(np.arange(8), 4) as loader:
        loader.trace(tmp_path / "trace.json")
        with pickle.loads(pickle.dumps(loader)) as other:
            assert len(list(other)) == 2


TIMES = st.integers(0, 50)


@st.composite
def tables(draw) -> np.ndarray:
    """Rows whose workers' clocks may be wrong, as those of other machines are."""
    rows, now = [], 0
    for position in range(draw(st.integers(0, 8))):
        began = draw(TIMES) * 20
        made = [began, began, began + draw(TIMES), 0, 0]
        made[3] = made[2] + draw(TIMES)
        made[4] = made[3] + draw(TIMES)
        asked = now + draw(st.integers(-3, 30))
        handed = max(asked, now) + draw(TIMES)
        moving = draw(st.sampled_from([0, 5, 100]))
        moved = handed - draw(st.integers(0, 3)) if moving else 0
        worker = draw(st.integers(-1, 1))
        rows.append((worker, 0, position, 4, 4, 9, 0, *made, max(asked, 0), 0, moving, max(moved, 0), handed))
        now = handed
    return np.array(rows, np.int64).reshape(len(rows), 17)


@given(tables(), st.booleans())
def test_a_trace_is_in_form_whatever_the_clocks_say(rows, moves_ahead):
    timeline = Timeline("x", rows, [WorkerDeath(5, 1, "SIGKILL")], ["worker 0", "worker 1"], moves_ahead, 7)
    check(list(events([timeline, timeline], base=-1000)))
