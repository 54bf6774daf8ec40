"""The live page as a user sees it: figures move, deaths are told, and it says when it is over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

import stoker
from stoker import Watch
from stoker.observe.page.gathering import Gathering
from stoker.observe.page.server import PageServer
from stoker.observe.page.snapshot import verdict
from stoker.observe.page.watching import _shown

# As long as another one takes to get some, the page itself gets one.
THREE_EVENTS = """() => new Promise((done) => {
    let seen = 0;
    const source = new EventSource("/events" + location.search);
    source.onmessage = () => { seen += 1; if (seen === 3) { source.close(); done(); } };
})"""


class Slow:
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(0.001)
        return np.full(8, index, np.float32)


@pytest.fixture
def loader():
    with stoker.Loader(Slow(), 4, workers=2, watch=True) as running:
        yield running


def test_figures_move_while_batches_flow_and_nothing_comes_from_outside(tab, loader):
    batches = iter(loader)
    for _ in range(40):
        next(batches)
    tab.open(loader.watch_url)
    tab.wait_for_figure("batches", "40")
    for _ in range(60):
        next(batches)
    tab.wait_for_figure("batches", "100")
    tab.wait_for("#status", "Live")
    station = verdict(loader.stats())["station"]  # a busy machine may have another than dataset[i]
    if station is not None:
        tab.page.wait_for_selector(f'.flow [data-station="{station}"] > .badge')
    tab.page.wait_for_selector("#pace canvas")
    origin = loader.watch_url.partition("/?")[0]
    assert [url for url in tab.loaded if not url.startswith((origin, "data:"))] == []


def endless(loader: stoker.Loader) -> Iterator[np.ndarray]:
    while True:
        yield from loader


def slow_move(batch: np.ndarray) -> np.ndarray:
    time.sleep(0.03)
    return batch


@pytest.mark.parametrize(
    ("options", "station"),
    [
        pytest.param({"workers": stoker.Threads(2)}, "fetch", id="slow dataset"),
        pytest.param({"workers": stoker.Threads(2), "to": slow_move}, "move", id="slow to="),
    ],
)
def test_the_culprit_of_a_really_slow_loader_is_marked(tab, options, station):
    """By sleeps, which no busy machine lengthens by as much as would name another. Many batches are taken between two
    looks: who looks at a page after each batch is a slow consumer, and would be named."""
    with stoker.Loader(Slow(), 10, watch=True, **options) as slow:
        batches = endless(slow)
        next(batches)
        tab.open(slow.watch_url)
        while tab.marked() != [(station, "▲ Bottleneck")]:  # until the test's time is up
            for _ in range(20):
                next(batches)


def test_a_worker_that_is_killed_is_shown(tab, loader):
    batches = iter(loader)
    next(batches)
    tab.open(loader.watch_url)
    tab.wait_for_figure("deaths", "0")
    os.kill(loader.worker_pids[0], signal.SIGKILL)
    while not loader.stats().deaths:
        next(batches)
    tab.wait_for_figure("deaths", "1")
    assert "1 worker of process" in tab.text("#events")


def test_the_page_can_be_paused_by_keyboard(tab, loader):
    batches = iter(loader)
    next(batches)
    tab.open(loader.watch_url)
    tab.wait_for_figure("batches", "1")
    tab.page.focus("#pause")
    tab.page.keyboard.press("Enter")
    assert tab.text("#status") == "Paused"
    next(batches)
    tab.page.evaluate(THREE_EVENTS)
    assert tab.figure("batches") == "1"
    tab.page.keyboard.press("Enter")
    tab.wait_for_figure("batches", "2")


def test_the_end_of_the_loader_is_the_end_of_the_page(tab, loader):
    next(iter(loader))
    tab.open(loader.watch_url)
    tab.wait_for_figure("batches", "1")
    loader.close()
    tab.wait_for("#status", "Ended")
    assert tab.figure("batches") == "1"


def test_another_loader_of_the_process_joins_and_leaves_the_page(tab, loader):
    next(iter(loader))
    tab.open(loader.watch_url)
    tab.wait_for_figure("batches", "1")
    assert not tab.page.locator("#consumers").is_visible()
    with stoker.stream(abs, range(9), watch=True) as results:
        next(results)
        tab.page.wait_for_selector(".consumer >> nth=1")
        tab.page.locator(".consumer", has_text="stream(abs)").click()
        assert "stream(abs)" in tab.text("#title")
    tab.page.wait_for_selector("#consumers", state="hidden")
    assert "Loader(Slow" in tab.text("#title")


def test_a_page_without_a_loader_waits_for_one(tab):
    server = PageServer(Watch(), Gathering(_shown), is_published=False)
    tab.open(server.url)
    tab.page.wait_for_selector("#nothing:visible")
    assert "waits for one" in tab.text("#nothing")
    with stoker.stream(abs, range(9), watch=True) as results:
        next(results)
        tab.wait_for_figure("batches", "1")
        assert "stream(abs)" in tab.text("#title")
    tab.page.wait_for_selector("#nothing:visible")
    server.close()
    tab.wait_for("#status", "Ended")


def test_a_wrong_token_shows_nothing(tab, loader):
    next(iter(loader))
    page = tab.page.goto(loader.watch_url[:-1] + "%20")
    assert page.status == 403
    assert "token" in tab.text("body")
    tab.complaints.clear()  # that the page was refused


def test_the_live_page_fits_a_phone(tab, loader):
    tab.page.set_viewport_size({"width": 360, "height": 740})
    next(iter(loader))
    tab.open(loader.watch_url)
    tab.wait_for_figure("batches", "1")
    assert not tab.is_too_wide()
