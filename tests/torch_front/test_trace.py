"""The drop-in's trace, alone and beside that of torch's profiler."""

from __future__ import annotations

import json
import pickle
import time

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import stoker
from stoker.torch import DataLoader
from tests.observe.chrome_traces import read, spans


class Slow(torch.utils.data.Dataset):
    """Slow enough that batches are made one by one."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((4,), index)


def test_spans_lie_within_those_of_torchs_profiler(tmp_path):
    loader = DataLoader(Slow(), batch_size=2, num_workers=2)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        with loader.trace(tmp_path / "own.json"):
            for batch in loader:
                batch.sum()
    profiled.export_chrome_trace(str(tmp_path / "torch.json"))
    stoker.merge_traces(tmp_path / "both.json", tmp_path / "torch.json", tmp_path / "own.json")
    events = json.loads((tmp_path / "both.json").read_text())["traceEvents"]
    is_next = [one for one in events if one.get("ph") == "X" and one["name"].startswith("enumerate(DataLoader)")]
    is_next.sort(key=lambda one: one["ts"])
    waits = [event for event in events if event.get("cat") == "stoker" and event["name"] == "wait"]
    assert len(waits) == 6
    for wait, torchs in zip(waits, is_next[:6], strict=True):
        begin, end = max(wait["ts"], torchs["ts"]), min(wait["ts"] + wait["dur"], torchs["ts"] + torchs["dur"])
        assert end - begin >= 0.9 * wait["dur"]


@pytest.mark.parametrize("persistent", [False, True])
def test_all_epochs_of_a_block_are_in_it(persistent, tmp_path):
    loader = DataLoader(Slow(), batch_size=2, num_workers=2, persistent_workers=persistent)
    with loader.trace(tmp_path / "trace.json"):
        for _ in range(2):
            list(loader)
    assert len(spans(read(tmp_path / "trace.json"), "wait")) == 12
    list(loader)
    loader._iterator = None
    assert len(spans(read(tmp_path / "trace.json"), "wait")) == 12


def test_a_call_in_the_loop_writes_what_there_was_so_far(tmp_path):
    loader = DataLoader(Slow(), batch_size=2, num_workers=2)
    for number, _ in enumerate(loader, 1):
        if number == 3:
            loader.trace(tmp_path / "trace.json")
            assert len(spans(read(tmp_path / "trace.json"), "wait")) == 3
    assert len(pickle.loads(pickle.dumps(loader))) == 6


def test_without_workers_it_says_why_there_is_none(tmp_path):
    with pytest.raises(ValueError, match="num_workers=0"):
        DataLoader(Slow()).trace(tmp_path / "trace.json")
