"""A report as a user sees it: in a real browser, light and dark, on a phone, by keyboard, without a network."""

from __future__ import annotations

import pytest

from stoker.observe.page import write_report
from tests.page.made_up import snapshot
from tests.page.test_report import EVIL

WAITING = {"fetch": 20, "write": 1, "wait": 15, "step": 10}


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report.html"
    write_report(path, [snapshot(**WAITING, deaths=2, nodes=("near", "far"))])
    return path


def test_the_sentence_and_the_flow_are_shown_and_nothing_is_loaded(tab, report):
    tab.open(report)
    assert tab.text("h1").startswith("Training waited for data 6")
    stations = [one.get_attribute("data-station") for one in tab.page.query_selector_all(".flow .station")]
    assert stations == ["fetch", "write", "ready", "wait", "step"]
    assert "samples/s" in tab.text('.station[data-station="fetch"]')
    assert "of workers' time" in tab.text('.station[data-station="fetch"]')
    assert tab.figure("deaths") == "2"
    assert tab.loaded == [report.as_uri()]


@pytest.mark.parametrize(
    ("milliseconds", "station", "word"),
    [
        (WAITING, "fetch", "▲ Bottleneck"),
        ({"fetch": 2, "write": 30, "wait": 15}, "write", "▲ Bottleneck"),
        ({"fetch": 2, "move": 30, "wait": 1}, "move", "▲ Bottleneck"),
        ({"fetch": 20, "wait": 0}, "step", "✓ Sets the pace"),
    ],
)
def test_the_bottleneck_is_marked_with_a_word(tab, tmp_path, milliseconds, station, word):
    write_report(tmp_path / "report.html", [snapshot(**milliseconds)])
    assert tab.open(tmp_path / "report.html").marked() == [(station, word)]


def test_workers_that_are_idle_are_marked_though_they_are_no_station(tab, tmp_path, monkeypatch):
    monkeypatch.setattr("stoker.observe.page.snapshot.verdict", lambda _: {"sentence": "Waste.", "station": "idle"})
    write_report(tmp_path / "report.html", [snapshot()])
    assert tab.open(tmp_path / "report.html").marked() == [("idle", "▲ Workers are idle")]


def test_pace_timeline_distributions_and_tables_are_drawn(tab, report):
    tab.open(report)
    assert tab.page.query_selector("#pace canvas") is not None
    timeline = tab.page.evaluate(
        """() => { const canvas = document.getElementById("timeline");
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size; }"""
    )
    assert timeline > 4, "colours of stations"
    shown = [one.get_attribute("data-station") for one in tab.page.query_selector_all(".distribution")]
    assert {"fetch", "write", "wait", "step"} <= set(shown)
    assert "p99" in tab.text('.distribution[data-station="fetch"]')
    assert "near" in tab.text("#workers")
    assert "far" in tab.text("#facts")
    tab.page.mouse.move(*_middle_of_the_first_lane(tab))
    assert tab.text("#tip").startswith("worker 0: dataset[i] 20")


def _middle_of_the_first_lane(tab) -> tuple[float, float]:
    tab.page.locator("#timeline").scroll_into_view_if_needed()
    box = tab.page.locator("#timeline").bounding_box()
    return box["x"] + 90, box["y"] + 10


def test_what_a_name_holds_is_shown_and_not_run(tab, tmp_path):
    write_report(tmp_path / "report.html", [snapshot(title=f'{EVIL}<img src=x onerror="alert(2)">')])
    tab.page.on("dialog", lambda dialog: tab.complaints.append(dialog.message))
    tab.open(tmp_path / "report.html")
    assert "<img src=x" in tab.text("#title")
    assert tab.page.query_selector("main img") is None


def test_a_report_of_a_loader_that_has_done_nothing_says_so(tab, tmp_path):
    import numpy as np

    import stoker

    with stoker.Loader(np.arange(4)) as loader:
        loader.report(tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    assert tab.text("h1") == "Nothing was delivered yet."
    assert tab.marked() == []
    assert not tab.page.locator("#timeline-section").is_visible()


def test_what_was_not_measured_is_not_told_as_nothing(tab, tmp_path):
    import numpy as np

    import stoker

    with stoker.Loader(np.arange(40), 4, workers=stoker.Threads(2), observe=False) as loader:
        list(loader)
        loader.report(tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    assert tab.text("h1") == "Nothing was measured: observe=False."
    assert (tab.figure("batches"), tab.figure("waited")) == ("10", "–")
    assert "cache" not in tab.text('.station[data-station="fetch"]').replace("or come out of a cache", "")
    assert "%" not in tab.text(".flow")
    assert not tab.page.locator("#workers-section").is_visible()


def test_slow_samples_are_named_and_the_station_that_they_are_slow_at_is_marked(tab, tmp_path):
    import stoker
    from tests.observe.slowness import Sleeping

    # Long enough that a slow start, on a busy machine, is not all that there is to tell.
    with stoker.Loader(Sleeping(3200, every=100, longer=0.05), 64, workers=stoker.Threads(2)) as loader:
        list(loader)
        loader.report(tmp_path / "report.html")
    tab.open(tmp_path / "report.html")
    assert tab.marked() == [("fetch", "▲ Bottleneck")]
    assert "slow samples" in tab.text("#facts")
    assert "50 (" in tab.text("#facts")


def test_the_theme_is_the_systems_until_it_is_chosen(tab, report):
    def ground() -> str:
        return tab.page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = tab.open(report) and ground()
    tab.page.emulate_media(color_scheme="dark")
    dark = ground()
    assert light != dark
    tab.page.focus("#theme")
    tab.page.keyboard.press("Enter")
    assert (ground(), tab.text("#theme")) == (light, "Theme: light")
    tab.page.emulate_media(color_scheme="light")
    tab.page.keyboard.press("Space")
    assert (ground(), tab.text("#theme")) == (dark, "Theme: dark")


@pytest.mark.parametrize(
    "width", [360, pytest.param(320, marks=pytest.mark.exhaustive), pytest.param(768, marks=pytest.mark.exhaustive)]
)
def test_nothing_is_wider_than_a_narrow_screen(tab, report, width):
    tab.page.set_viewport_size({"width": width, "height": 740})
    assert not tab.open(report).is_too_wide()


def test_a_rank_that_lags_is_named(tab, tmp_path):
    ranks = [snapshot(key=f"{rank}-0", shard=(rank, 3), **WAITING) for rank in range(3)]
    ranks[0] = snapshot(key="0-0", shard=(0, 3), fetch=5, wait=0, step=25)
    ranks[2] = snapshot(key="2-0", shard=(2, 3), fetch=5, wait=0, step=25)
    write_report(tmp_path / "report.html", ranks)
    tab.open(tmp_path / "report.html")
    buttons = tab.page.locator(".consumer").all_inner_texts()
    assert ["lags" in text for text in buttons] == [False, True, False]
    assert buttons[1].startswith("rank 1 of 3")


def test_loaders_that_are_no_ranks_do_not_lag(tab, tmp_path):
    write_report(tmp_path / "report.html", [snapshot(key="1-0", step=25), snapshot(key="2-0", **WAITING)])
    tab.open(tmp_path / "report.html")
    assert ["lags" in text for text in tab.page.locator(".consumer").all_inner_texts()] == [False, False]


def test_consumers_are_chosen_by_keyboard_and_the_focus_is_seen(tab, tmp_path):
    write_report(tmp_path / "report.html", [snapshot(key=f"{rank}-0", shard=(rank, 2)) for rank in range(2)])
    tab.open(tmp_path / "report.html")
    reached = []
    for _ in range(4):
        tab.page.keyboard.press("Tab")
        reached.append(tab.page.evaluate("document.activeElement.dataset.key || document.activeElement.id || 'skip'"))
    assert reached == ["skip", "theme", "0-0", "1-0"]
    assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert tab.text("#title").startswith("rank 0 of 2")
    tab.page.keyboard.press("Enter")
    assert tab.text("#title").startswith("rank 1 of 2")
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
