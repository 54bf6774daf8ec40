"""The report: the sentence first, then the table."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import stoker
from stoker import Inline, Loader, Threads
from tests.observe.slowness import Sleeping


@pytest.mark.parametrize("workers", [Inline(), Threads(2)], ids=repr)
def test_a_report_is_the_sentence_and_then_the_table(workers, capsys):
    with Loader(Sleeping(20, 0.001), 4, workers=workers) as loader:
        list(loader)
        loader.report()
    printed, text = capsys.readouterr().out, loader.stats().to_text()
    for words in (printed, text):
        told, _, table = words.partition(" station ")
        assert " ".join(told.split()).startswith(loader.stats().diagnosis[:40])
        assert [name for name in ("fetch", "write", "wait", "step") if f" {name} " not in table] == []
        assert "5 batches and 20 samples" in table
    assert ("\n worker " in text) == (workers != Inline())


def test_what_users_name_is_not_taken_for_markup():
    with Loader(Sleeping(40, 0.01), 4, workers=Threads(1)) as loader:
        list(loader)
    assert "dataset[i]" in loader.stats().to_text()


@pytest.mark.parametrize("observe", [True, False])
def test_a_loader_that_has_done_nothing_or_measures_nothing_has_a_report(observe, capsys):
    with Loader(range(4), 2, observe=observe) as loader:
        loader.report()
        list(loader)
        loader.report()
    loader.report()
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "Nothing was delivered yet."
    assert last


def test_a_stream_has_a_report_in_its_own_words(capsys):
    with stoker.stream(str, range(30), workers=Threads(2)) as results:
        list(results)
        results.report()
    assert "30 batches" in capsys.readouterr().out


def test_figures_outlive_their_stream_and_do_not_keep_it():
    results = stoker.stream(abs, range(10), workers=Threads(2))
    figures = results.observed.stats
    assert figures().batches == 0
    next(results)
    assert (figures().batches, figures().slots > 0) == (1, True)
    del results
    assert (figures().batches, figures().slots) == (1, 0)


def test_a_report_that_is_asked_for_by_another_thread_while_batches_flow():
    with Loader(Sleeping(400), 4, workers=Threads(2)) as loader, ThreadPoolExecutor(1) as pool:
        texts = []
        for _ in loader:
            if len(texts) < 5:
                texts.append(pool.submit(lambda: loader.stats().to_text()))
            time.sleep(0.0005)
        assert [text.result() for text in texts if "station" not in text.result()] == []
