"""A report is one file: nothing is loaded from elsewhere, and nothing that it shows becomes part of it."""

from __future__ import annotations

import gc
import json
import re

import numpy as np
import pytest

import stoker
from stoker.observe.page import write_report
from tests.page.made_up import snapshot

EVIL = "</script><script>alert(1)</script><!-- <!--script--> \ud800 \u2028 ${x} <!--data-->"


def data_of(path) -> dict:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert block is not None
    return json.loads(block[1])


def test_what_a_name_holds_stays_a_name(tmp_path):
    path, plain = tmp_path / "report.html", tmp_path / "plain.html"
    write_report(path, [snapshot(title=EVIL)])
    write_report(plain, [snapshot()])
    text = path.read_text()
    assert data_of(path)["loaders"][0]["title"] == EVIL
    assert "alert(1)</script>" not in text
    assert text.count("<script") == plain.read_text().count("<script")


def test_nothing_in_it_leads_outside(tmp_path):
    path = tmp_path / "report.html"
    write_report(path, [snapshot()])
    text = path.read_text()
    assert not re.search(r"""(src|href|action)\s*=\s*["']?\s*(https?:)?//""", text)
    assert not re.search(r"@import|url\(", text)
    assert "default-src 'none'" in text


def test_loaders_and_streams_write_one_at_any_time_of_their_life(tmp_path):
    path = tmp_path / "report.html"
    loader = stoker.Loader(np.arange(40.0), 4, workers=stoker.Threads(2))
    loader.report(path)
    assert data_of(path)["loaders"][0]["stats"]["batches"] == 0
    list(loader)
    loader.close()
    loader.report(str(path))
    assert data_of(path)["loaders"][0]["stats"]["batches"] == 10
    with stoker.stream(abs, [-1, -2], workers=stoker.Threads(1)) as results:
        list(results)
        results.report(path)
    assert data_of(path)["loaders"][0]["stats"]["samples"] == 2
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["report.html"]


def test_what_is_observed_outlives_a_stream_without_keeping_its_workers(tmp_path):
    results = stoker.stream(abs, range(20), workers=stoker.Processes(1))
    next(results)
    observed = results.observed
    del results
    gc.collect()
    observed.report(tmp_path / "report.html")
    told = data_of(tmp_path / "report.html")["loaders"][0]
    assert (told["phase"], told["workers"], told["stats"]["batches"]) == ("closed", [], 1)


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path):
    with stoker.Loader(np.arange(4)) as loader:
        with pytest.raises(OSError):
            loader.report(tmp_path / "missing" / "report.html")
        (tmp_path / "folder").mkdir()
        with pytest.raises(OSError):
            loader.report(tmp_path / "folder")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "runtime"]


def test_the_drop_in_for_torch_reports_its_last_loop(tmp_path):
    torch = pytest.importorskip("torch")
    from stoker.torch import DataLoader

    loader = DataLoader(torch.arange(40), batch_size=4, num_workers=1)
    with pytest.raises(RuntimeError, match="num_workers"):
        loader.report(tmp_path / "report.html")
    assert len(list(loader)) == 10
    loader.report(tmp_path / "report.html")
    assert data_of(tmp_path / "report.html")["loaders"][0]["title"] == "DataLoader(Tensor, batch_size=4)"
