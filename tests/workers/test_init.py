"""``init=``: what each worker calls before the dataset is made or used."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Iterator
from functools import partial

import pytest

import stoker
from stoker import Chunks, Inline, Loader, Processes, ShippingError, Threads
from tests.workers import surroundings
from tests.workers.surroundings import Rooted, set_root


@pytest.fixture(autouse=True)
def unset(monkeypatch) -> None:
    monkeypatch.setattr(surroundings, "ROOT", "unset")


@pytest.mark.parametrize("dataset", [Rooted, partial(Rooted, 40), Rooted(40)], ids=["class", "partial", "object"])
def test_it_runs_before_the_dataset_is_made_or_used(backend, dataset):
    with Loader(dataset, 4, workers=backend, init=set_root) as loader:
        for _, made_in, now in loader:
            assert made_in[0] == ("unset" if isinstance(dataset, Rooted) else "/data")
            assert now == ["/data"] * 4


def test_without_it_a_worker_has_a_modules_globals_as_they_are_imported(monkeypatch):
    monkeypatch.setattr(surroundings, "ROOT", "/set/in/the/training/process")
    with Loader(Rooted(8), 4, workers=1) as loader:
        assert next(iter(loader))[2] == ["unset"] * 4


def test_a_worker_that_takes_the_place_of_a_dead_one_runs_it_too():
    with Loader(Rooted(400), 2, workers=1, prefetch=1, init=set_root) as loader:
        iterator = iter(loader)
        pid = int(next(iterator)[0][0])
        os.kill(pid, signal.SIGKILL)
        rest = [(int(pids[0]), now[0]) for pids, _, now in iterator]
    assert rest[-1] == (rest[-1][0], "/data")
    assert rest[-1][0] != pid


class Calls:
    """Counts by thread; held by tests only where workers are threads of this process."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def __call__(self) -> None:
        self.threads.append(threading.get_ident())


def test_inline_it_runs_once_in_the_consumers_thread_before_the_first_batch():
    calls = Calls()
    with Loader(Rooted(8), 4, init=calls) as loader:
        assert calls.threads == []
        assert len(list(loader)) == len(list(loader)) == 2
    assert calls.threads == [threading.get_ident()]


def test_of_threads_each_runs_it_once():
    calls, barrier = Calls(), threading.Barrier(3)

    def init() -> None:
        calls()
        barrier.wait(30)  # so that no thread does the work of another

    with Loader(Rooted(40), 4, workers=Threads(3), init=init) as loader:
        assert len(list(loader)) == len(list(loader)) == 10
    assert len(calls.threads) == len(set(calls.threads)) == 3
    assert threading.get_ident() not in calls.threads


def say_root(item: int) -> str:
    return surroundings.ROOT


def read_root(path: str) -> Iterator[str]:
    yield surroundings.ROOT


def test_streams_and_chunk_files_have_it_too(tmp_path):
    with stoker.stream(say_root, range(4), workers=1, init=set_root) as results:
        assert list(results) == ["/data"] * 4
    (tmp_path / "file").touch()
    with Loader(Chunks(tmp_path / "file", read=read_root), None, workers=1, init=set_root) as loader:
        assert len(loader) == 1
        assert list(loader) == ["/data"]


def fail() -> None:
    raise LookupError("no configuration here")


@pytest.mark.parametrize("dataset", [Rooted, Rooted(40)], ids=["class", "object"])
def test_what_it_raises_is_raised_with_its_type_and_a_note(backend, dataset, caplog):
    with Loader(dataset, 4, workers=backend, init=fail) as loader:
        for _ in range(2):
            with pytest.raises(LookupError, match="no configuration here") as caught:
                next(iter(loader))
    assert "stoker: init raised it" in "\n".join(caught.value.__notes__)
    assert not caplog.records


@pytest.mark.parametrize("workers", [Inline(), Threads(1), Processes(1)], ids=repr)
def test_what_is_no_function_is_an_error_in_the_constructor(workers):
    with pytest.raises(TypeError, match="init=3: pass a function"):
        Loader(Rooted(4), 4, workers=workers, init=3)
    with pytest.raises(TypeError, match="init='x': pass a function"):
        stoker.stream(say_root, [1], workers=workers, init="x")


def test_one_that_cannot_travel_is_named():
    lock = threading.Lock()
    with pytest.raises(ShippingError, match=r"init .* cannot be pickled"):
        Loader(Rooted(4), 4, workers=1, init=lambda: lock.acquire())


def test_a_loader_with_it_still_pickles():
    with pickle.loads(pickle.dumps(Loader(Rooted(4), 4, init=set_root))) as loader:
        assert next(iter(loader))[2] == ["/data"] * 4
