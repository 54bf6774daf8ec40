"""close(), from anywhere and at any time: whoever waits gets a ClosedError, and nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

import stoker
from stoker import Chunks, ClosedError, Inline, Loader, Processes, Threads, engine_owner, feed
from stoker.surveys import worker_map
from tests.children import children
from tests.datasets import Failing, Rows
from tests.items import works

STARTS = [Processes(2), Processes(2, start="fork")]
WORKERS = [Threads(2), *STARTS]

pytestmark = pytest.mark.timeout(120)


class Endless(Rows):
    """From the third batch on, nothing comes any more: a process sleeps, a thread waits for an event."""

    def __init__(self, event: threading.Event | None = None) -> None:
        super().__init__(40)
        self.event = event

    def __getitem__(self, index):
        if index >= 10:
            time.sleep(600) if self.event is None else self.event.wait()
        return super().__getitem__(index)

    def work(self, item):
        return self[5 * item]

    def read(self, path):
        if not path.endswith("0.npy"):
            self[39]
        yield from np.load(path)


def moved(batch):
    return batch.copy()


def join_threads() -> None:
    """Those that were in the user's code when their loader was closed end a little later."""
    for thread in threading.enumerate():
        if thread.name.startswith("stoker"):
            thread.join()


FRONTS = {
    "loader": lambda dataset, workers, folder: Loader(dataset, 5, workers=workers),
    "device": lambda dataset, workers, folder: Loader(dataset, 5, workers=workers, to_device=moved),
    "stream": lambda dataset, workers, folder: stoker.stream(dataset.work, itertools.count(), workers=workers),
    "stream on a device": lambda dataset, workers, folder: stoker.stream(
        dataset.work, itertools.count(), workers=workers, to_device=moved
    ),
    "chunks": lambda dataset, workers, folder: Loader(
        Chunks(folder, read=dataset.read, interleave=1), 5, workers=workers, shuffle=True
    ),
    "chunks that are counted": lambda dataset, workers, folder: Loader(
        Chunks(folder, read=dataset.read), 5, workers=workers
    ),
}


@contextlib.contextmanager
def waiting(front, workers, tmp_path, monkeypatch):
    """A loader or stream whose next batch never comes, and an iterator over it."""
    monkeypatch.setattr("stoker.workers.threads._JOIN_S", 0.05)
    for k in range(4):
        np.save(tmp_path / f"{k}.npy", np.arange(5))
    event = threading.Event() if isinstance(workers, Threads) else None
    try:
        yield FRONTS[front](Endless(event), workers, str(tmp_path))
    finally:
        if event is not None:
            event.set()
            join_threads()


def closing_ways():
    def by_a_thread(loader):
        return [threading.Timer(0.1, loader.close)]

    def by_two_threads(loader):
        return [threading.Timer(0.1, loader.close) for _ in range(2)]

    def by_a_handler(loader):
        signal.signal(signal.SIGALRM, lambda *_: loader.close())
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        return []

    return [by_a_thread, by_two_threads, by_a_handler]


@pytest.mark.parametrize("way", closing_ways())
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
@pytest.mark.parametrize("front", FRONTS)
def test_whoever_waits_gets_a_closed_error(front, workers, way, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGALRM)
    with waiting(front, workers, tmp_path, monkeypatch) as loader:
        closing = way(loader)
        for thread in closing:
            thread.start()
        with pytest.raises(ClosedError):
            for _ in loader:
                pass
        for thread in closing:
            thread.join()
        assert not children()
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("by_another", [False, True], ids=["by a handler", "by another thread"])
def test_a_close_just_before_files_are_counted_is_heard(by_another, tmp_path, monkeypatch):
    """There is nothing yet that could be closed, and what is begun then would never end."""
    with waiting("chunks that are counted", Threads(2), tmp_path, monkeypatch) as loader:

        def closed_first(*args, **options):
            if by_another:
                thread = threading.Thread(target=loader.close)
                thread.start()
                while not loader._session._agenda._surveyor._crew.is_closed:
                    thread.join(0.01)
                closing.append(thread)
            else:
                loader.close()
            return stoker.stream(*args, **options)

        closing = []
        monkeypatch.setattr(worker_map, "stream", closed_first)
        with pytest.raises(ClosedError):
            next(iter(loader))
        for thread in closing:
            thread.join()


@pytest.mark.parametrize("workers", [Inline(), *WORKERS], ids=repr)
@pytest.mark.parametrize("argument", ["to", "to_device", "collate"])
def test_what_a_loader_calls_may_close_it(workers, argument):
    def call(given):
        made[0].close()
        return given[0]

    if argument == "collate" and isinstance(workers, Processes):
        pytest.skip("it is called in another process")
    made = [Loader(Rows(40), 5, workers=workers, **{argument: call})]
    with contextlib.suppress(ClosedError):
        next(iter(made[0]))
    with pytest.raises(ClosedError):
        iter(made[0])
    join_threads()


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_closing_while_the_workers_start(workers):
    for delay in (0.0, 0.001, 0.005, 0.02, 0.05):
        loader = Loader(Rows(40), 5, workers=workers)
        closing = threading.Timer(delay, loader.close)
        closing.start()
        with contextlib.suppress(ClosedError):
            for _ in itertools.count():
                list(loader)
        closing.join()
        assert not children()


@pytest.mark.parametrize("workers", STARTS, ids=repr)
def test_closing_while_the_length_is_asked_for(workers):
    def never():
        time.sleep(600)

    loader = Loader(never, 5, workers=workers)
    closing = threading.Timer(0.1, loader.close)
    closing.start()
    with pytest.raises(ClosedError):
        len(loader)
    closing.join()


def test_a_loader_that_two_threads_ask_at_once_says_so():
    asked, go_on = threading.Event(), threading.Event()

    def to(batch):
        asked.set()
        go_on.wait()
        return batch

    with Loader(Rows(40), 5, workers=Threads(1), to=to) as loader:
        iterator = iter(loader)
        thread = threading.Thread(target=next, args=(iterator,))
        thread.start()
        asked.wait()
        with pytest.raises(RuntimeError, match="from one thread at a time"):
            next(iterator)
        go_on.set()
        thread.join()
        assert len(list(iterator)) == 7


@pytest.mark.timeout(20)
def test_ctrl_c_in_close_closes_no_file_under_a_thread(tmp_path, monkeypatch):
    """The next file that is opened would get its number, and what the thread writes then."""
    monkeypatch.setattr("stoker.workers.threads._JOIN_S", 0.3)
    begun, go_on = threading.Event(), threading.Event()

    class Patient(Rows):
        def __getitem__(self, index):
            if index >= 5:
                begun.set()
                go_on.wait()
            return super().__getitem__(index)

    loader = Loader(Patient(40), 5, workers=Threads(3))
    next(iter(loader))
    assert begun.wait(10)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("stoker")]
    ctrl_c = [threading.Timer(0.05 * k, os.kill, (os.getpid(), signal.SIGINT)) for k in (1, 2)]
    for timer in ctrl_c:
        timer.start()
    with pytest.raises(KeyboardInterrupt):
        loader.close()
    for timer in ctrl_c:
        timer.join()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(tmp_path / str(k), "wb+")) for k in range(20)]
        go_on.set()
        for thread in threads:
            thread.join()
        assert [os.path.getsize(file.name) for file in files] == [0] * 20


# Forgotten: without the garbage collector, since a cycle would wait for it


def left() -> tuple[int, list[str], int]:
    """Processes, threads and descriptors of ours."""
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    ours = sum("memfd:stoker" in os.readlink(link) for link in links if os.path.islink(link))
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")]
    return len(children()), threads, ours


def left_by_break(make):
    for _ in make():
        break


def left_as_an_iterator(make):
    iterator = iter(make())
    next(iterator)
    next(iterator)


def left_by_an_error_in_the_loop(make):
    with pytest.raises(ZeroDivisionError):
        [1 // 0 for _ in make()]


def left_by_an_error_of_the_data(make):
    iterator = iter(make())
    with pytest.raises((ValueError, KeyError)):
        for _ in iterator:
            pass


@pytest.mark.parametrize("way", [left_by_break, left_as_an_iterator, left_by_an_error_in_the_loop])
@pytest.mark.parametrize("workers", [Inline(), *WORKERS], ids=repr)
def test_what_is_forgotten_ends_at_once(way, workers, tmp_path):
    for k in range(4):
        np.save(tmp_path / f"{k}.npy", np.arange(5))
    fronts = [
        lambda: Loader(Rows(40), 5, workers=workers),
        lambda: Loader(Rows(40), 5, workers=workers, to_device=moved),
        lambda: Loader(Chunks(str(tmp_path)), 5, workers=workers),
        lambda: stoker.stream(works.number, itertools.count(), workers=workers),
    ]
    gc.collect()
    gc.disable()
    before = left()
    try:
        for make in fronts:
            way(make)
            assert left() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("workers", [Inline(), *WORKERS], ids=repr)
def test_what_is_forgotten_after_an_error_ends_at_once(workers):
    def failing(batch):
        raise ValueError("to")

    fronts = [
        lambda: Loader(Failing(40), 5, workers=workers),
        lambda: Loader(Rows(40), 5, workers=workers, to=failing),
        lambda: Loader(Rows(40), 5, workers=workers, to_device=failing),
        lambda: stoker.stream(works.failing, itertools.count(), workers=workers),
    ]
    gc.collect()
    gc.disable()
    before = left()
    try:
        for make in fronts:
            left_by_an_error_of_the_data(make)
            assert left() == before
    finally:
        gc.enable()


def test_an_iterator_alone_keeps_its_loader_going(backend):
    iterator = iter(Loader(Rows(40), 5, workers=backend))
    gc.collect()
    assert [int(batch[0, 0]) for batch in iterator] == list(range(0, 40, 5))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_a_loader_may_be_collected_in_the_thread_that_moves_its_batches(workers):
    """The garbage collector runs in whichever thread allocates: that thread cannot wait for its own end."""
    dropped, collected = threading.Event(), threading.Event()

    def to_device(batch):
        if batch[0, 0] == 5:
            dropped.wait()
            gc.collect()
            collected.set()
        return batch.copy()

    before = left()
    gc.disable()
    try:
        loader = Loader(Rows(40), 5, workers=workers, to_device=to_device)
        loader.myself = loader
        next(iter(loader))
        del loader
        dropped.set()
        assert collected.wait(10)
        join_threads()
        assert left() == before
    finally:
        gc.enable()


MOMENTS = {
    "before the engine": (engine_owner, "assembled"),
    "before the seek": (feed.Feed, "seek"),
    "after it": (feed.Feed, "_move_ahead"),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("front", ["loader", "device"])
def test_a_handler_that_closes_at_any_moment_of_the_start_ends_the_wait(front, moment, tmp_path, monkeypatch):
    original = getattr(*MOMENTS[moment])

    def closing(*args, **kwargs):
        loader.close()
        return original(*args, **kwargs)

    monkeypatch.setattr(*MOMENTS[moment], closing)
    with waiting(front, Processes(1), tmp_path, monkeypatch) as loader, pytest.raises(ClosedError):
        for _ in loader:
            pass
