"""The drop-in's progress bar and live page: the same arguments as ``Loader`` has, epoch after epoch."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import re

import pytest
import torch

import stoker
from stoker.observe import bar
from stoker.observe.pace import Figures
from stoker.torch import DataLoader, adopt
from tests.page.requests import answer

SUMMARY = r"epoch {}: {} batches in 0:00:\d\d, [\d.,]+ batches/s, waited \d+%"


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "stoker"


def on_page(loader) -> list[dict]:
    status, told = answer(loader.watch_url, "/snapshot")
    assert status == 200
    return json.loads(told)


@pytest.mark.parametrize("persistent", [False, True])
def test_all_epochs_are_in_one_place_on_one_page(registry, persistent, capsys):
    loader = DataLoader(torch.arange(40), batch_size=4, num_workers=2, persistent_workers=persistent, watch=True)
    assert loader.watch_url is None
    seen = []
    for epoch in range(3):
        assert len(list(loader)) == 10
        (found,) = on_page(loader)
        assert (found["title"], found["epoch"]) == ("DataLoader(Tensor, batch_size=4)", epoch)
        seen.append((found["key"], loader.watch_url))
        expected = 10 * (epoch + 1) if persistent else 10
        assert (found["stats"]["batches"], found["stats"]["samples"]) == (expected, 4 * expected)
        assert found["stats"]["setup"]["workers_argument"] == "num_workers"
    assert len(set(seen)) == 1
    assert capsys.readouterr().err.count(loader.watch_url) == 1
    url = loader.watch_url
    del loader
    gc.collect()
    assert os.listdir(registry) == []
    with pytest.raises(ConnectionError):
        answer(url)


def test_a_loader_that_only_its_loop_holds_stays_on_the_page(registry):
    iterator = iter(DataLoader(torch.arange(40), batch_size=4, num_workers=1, watch=True))
    gc.collect()
    next(iterator)
    assert len(os.listdir(registry)) == 1
    del iterator
    gc.collect()
    assert os.listdir(registry) == []


def test_copies_and_pickles_have_a_page_of_their_own():
    loader = DataLoader(torch.arange(8), batch_size=4, num_workers=1, progress=True, watch=True)
    list(loader)
    for copied in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        other = copied(loader)
        assert (other.progress, other.watch, other.watch_url) == (True, True, None)
        assert len(list(other)) == 2
        assert other.watch_url == loader.watch_url, "there is one page a process"
        assert len({one["key"] for one in on_page(loader)}) == 2
        del other
        gc.collect()


def test_an_adopted_loader_has_them_too():
    given = torch.utils.data.DataLoader(torch.arange(8), batch_size=4, num_workers=1)
    adopted = adopt(given, watch=stoker.Watch(), progress=True)
    assert (adopted.watch, adopted.progress) == (stoker.Watch(), True)
    again = adopt(torch.utils.data.DataLoader(torch.arange(8)), progress=True)
    assert (again.watch, again.progress, adopt(again)) == (False, True, again)


def test_the_rank_is_that_of_its_sampler():
    sampler = torch.utils.data.DistributedSampler(torch.arange(8), num_replicas=4, rank=3)
    loader = DataLoader(torch.arange(8), sampler=sampler, num_workers=1, watch=True)
    assert len(list(loader)) == 2
    assert [one["shard"] for one in on_page(loader)] == [[3, 4]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"watch": True}, ValueError, "num_workers=1 or more"),
        ({"watch": 8080, "num_workers": 1}, TypeError, r"stoker\.Watch\("),
        ({"progress": 1}, TypeError, "progress=1: pass True or False"),
    ],
)
def test_bad_arguments_are_found_at_once(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(torch.arange(8), **options)


def test_the_html_report_speaks_of_torchs_arguments(tmp_path):
    loader = DataLoader(torch.arange(40), batch_size=4, num_workers=2)
    list(loader)
    loader.report(tmp_path / "report.html")
    assert '"workers_argument": "num_workers"' in (tmp_path / "report.html").read_text()


class Screen:
    """Remembers what is drawn, as ``found_screen`` has it."""

    def __init__(self) -> None:
        self.drawn: list[Figures] = []
        self.left: list[str | None] = []

    def draw(self, figures: Figures) -> None:
        self.drawn.append(figures)

    def end(self, summary: str | None) -> None:
        self.left.append(summary)


@pytest.fixture
def screen(monkeypatch):
    found = Screen()
    monkeypatch.setattr(bar, "_FIRST_S", 0.0)  # each batch draws
    monkeypatch.setattr(bar, "_AGAIN_S", 0.0)
    monkeypatch.setattr(bar, "found_screen", lambda: found)
    return found


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}], ids=repr)
def test_a_bar_is_drawn_for_each_epoch_and_counts_batches(screen, options):
    loader = DataLoader(torch.arange(40), batch_size=4, progress=True, **options)
    for epoch in range(2):
        list(loader)
        assert re.fullmatch(SUMMARY.format(epoch, 10), screen.left[epoch])
        counts = [(one.done, one.total) for one in screen.drawn if one.name == f"epoch {epoch}"]
        assert counts == [(done, 10) for done in range(11)]
    for _ in loader:
        state = loader.state_dict()
        break
    loader = None  # as workers that persist keep their bar until the next loop, or the end
    gc.collect()
    assert screen.left[2].startswith("epoch 2: 1 of 10 batches in")
    again = DataLoader(torch.arange(40), batch_size=4, progress=True, **options)
    again.load_state_dict(state)
    list(again)
    assert re.fullmatch(SUMMARY.format(2, 10), screen.left[3])
    assert len(screen.left) == 4


class Endless(torch.utils.data.Sampler):
    def __iter__(self):
        return iter(range(7))


def test_where_there_is_no_length_batches_are_counted(screen):
    list(DataLoader(torch.arange(40), sampler=Endless(), progress=True))
    assert {one.total for one in screen.drawn} == {None}
    assert screen.left[0].startswith("epoch 0: 7 batches in")


def test_only_rank_0_has_a_bar(screen):
    for rank in (1, 0):
        sampler = torch.utils.data.DistributedSampler(torch.arange(40), num_replicas=2, rank=rank)
        list(DataLoader(torch.arange(40), batch_size=4, sampler=sampler, progress=True))
        assert len(screen.left) == 1 - rank
