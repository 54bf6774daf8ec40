"""Several traces in one file, on one axis of time."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import stoker
from tests.observe.chrome_traces import read, spans


def traced(path) -> None:
    with stoker.Loader(np.arange(12), 4, workers=stoker.Threads(1)) as loader, loader.trace(path):
        list(loader)


def unix_times(trace) -> list[int]:
    """When each wait began, in microseconds of the Unix epoch."""
    base = trace["baseTimeNanoseconds"] / 1e3
    return sorted(round(base + span["ts"]) for span in spans(trace["traceEvents"], "wait"))


def test_events_of_all_files_keep_their_time_and_are_told_apart(tmp_path):
    files = [tmp_path / name for name in ("a.json", "b.json", "c.json.gz")]
    for path in files:
        traced(path)
    stoker.merge_traces(tmp_path / "all.json", *files)
    merged = read(tmp_path / "all.json")  # which finds arrows and asynchronous spans that were mixed up
    assert len({event["pid"] for event in merged}) == 3
    parts = [json.loads(path.read_bytes()) for path in files[:2]] + [json.loads(gzip.decompress(files[2].read_bytes()))]
    expected = sorted(time for part in parts for time in unix_times(part))
    found = unix_times(json.loads((tmp_path / "all.json").read_text()))
    assert found == pytest.approx(expected, abs=1)


def test_what_else_the_first_file_says_is_kept(tmp_path):
    traced(tmp_path / "own.json")
    of_torch = {"schemaVersion": 1, "baseTimeNanoseconds": 5, "displayTimeUnit": "ms", "traceEvents": []}
    of_torch["traceEvents"].append({"ph": "X", "name": "op", "pid": "Spans", "tid": "x", "ts": 1.5, "dur": 2})
    (tmp_path / "torch.json").write_text(json.dumps(of_torch))
    stoker.merge_traces(tmp_path / "all.json", tmp_path / "torch.json", tmp_path / "own.json")
    merged = json.loads((tmp_path / "all.json").read_text())
    assert (merged["schemaVersion"], merged["baseTimeNanoseconds"]) == (1, 5)
    assert merged["traceEvents"][0] == of_torch["traceEvents"][0]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"traceEvents": []}', '{"traceEvents": 3}'])
def test_a_file_that_is_no_trace_is_named(content, tmp_path):
    traced(tmp_path / "own.json")
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ValueError, match=r"bad\.json"):
        stoker.merge_traces(tmp_path / "all.json", tmp_path / "own.json", tmp_path / "bad.json")
    assert not (tmp_path / "all.json").exists()
