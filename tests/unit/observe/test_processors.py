"""What the operating system says of processors, where it says anything."""

from __future__ import annotations

import os
import threading

import pytest

from stoker.observe import processors
from stoker.observe.processors import ProcessorWatch


@pytest.fixture
def watch(monkeypatch):
    monkeypatch.setattr(processors, "_AGAIN_S", 0.0)
    return ProcessorWatch()


def test_times_of_the_consumer_count_from_its_first_batch(watch):
    watch.begin(threading.get_native_id())
    before = watch.last
    sum(range(10**6))
    watch.look([])
    assert (before.consumer_cpu, before.consumer_delay) == (0.0, None)
    assert watch.last.cores >= 1
    assert 0 < watch.last.consumer_cpu < 10
    assert watch.last.consumer_delay >= 0


def test_what_is_gone_is_told_as_it_was_seen_last(watch):
    watch.begin(threading.get_native_id())
    watch.look([os.getpid()])
    seen = watch.last
    assert seen.busy_threads >= 1
    watch.look([2**22 + 1])
    assert (watch.last.workers_delay, watch.last.busy_threads) == (seen.workers_delay, seen.busy_threads)


def test_threads_that_end_take_nothing_from_what_workers_had(monkeypatch):
    monkeypatch.setattr(processors, "_AGAIN_S", 0.0)
    go, ended = threading.Event(), threading.Thread(target=lambda: (sum(range(10**6)), go.wait()))
    ended.start()
    watch = ProcessorWatch(has_threads=True)
    watch.begin(threading.get_native_id())
    go.set()
    ended.join()
    watch.look([])
    assert watch.last.workers_cpu >= 0
    assert watch.last.workers_delay >= 0
    assert watch.last.seconds > 0


def test_who_asks_again_at_once_sees_the_same():
    watch = ProcessorWatch()
    watch.begin(threading.get_native_id())
    watch.look([])
    seen = watch.last
    sum(range(10**5))
    watch.look([os.getpid()])
    assert watch.last is seen


@pytest.mark.parametrize("has_threads", [True, False])
def test_where_there_is_no_such_file_nothing_is_said(monkeypatch, has_threads):
    monkeypatch.setattr(processors, "core_time_of", lambda folder: None)
    watch = ProcessorWatch(has_threads=has_threads)
    watch.begin(threading.get_native_id())
    watch.look([os.getpid()])
    assert (watch.last.consumer_delay, watch.last.workers_delay, watch.last.busy_threads) == (None, None, 0.0)


@pytest.mark.parametrize("content", ["", "1 2", "a b c", None])
def test_a_file_of_another_form_says_nothing(tmp_path, content):
    file = tmp_path / "schedstat"
    if content is not None:
        file.write_text(content)
    assert processors.core_time_of(str(file.parent)) is None
