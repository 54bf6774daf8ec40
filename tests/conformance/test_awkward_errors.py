"""Errors that are hard to carry, or to survive, arrive in their place, and no worker dies of them."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import stoker
from stoker import Inline, Loader, Processes, Threads
from tests.datasets import Rows
from tests.errors import Closed, Exiting, Killing, Silent


def raise_for(index):
    """Each sample raises another kind of error that is hard to carry, or to survive."""
    RAISED[index % len(RAISED)]()


def _raise(error):
    raise error


def from_a_plugin():
    """Its class comes from where only this worker has looked."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "plugins"))
    from stoker_test_plugin import PluginError

    raise PluginError("not here")


RAISED = [
    lambda: _raise(Silent("m")),
    lambda: _raise(Exiting("m")),
    lambda: _raise(Killing("m")),
    lambda: _raise(KeyboardInterrupt),
    lambda: sys.exit(5),
    lambda: _raise(GeneratorExit),
    lambda: _raise(StopIteration),
    lambda: _raise(ExceptionGroup("m", [Exiting("m")])),
    from_a_plugin,
]
ARRIVES = [Silent, Exiting, Killing, *[RuntimeError] * 4, ExceptionGroup, LookupError]


class RaisingAll(Rows):
    def __getitem__(self, index):
        if index % 2:
            raise_for(index // 2)
        return self.data[index]


def errors_of(iterator) -> list[BaseException]:
    """The errors that come in the place of every second batch; what comes between is as it should be."""
    errors = []
    for place in range(2 * len(RAISED)):
        if place % 2:
            with pytest.raises(Exception) as caught:
                next(iterator)
            errors.append(caught.value)
        else:
            assert np.asarray(next(iterator)).ravel()[0] == place
    assert list(iterator) == []
    return errors


@pytest.fixture(autouse=True)
def no_plugin(monkeypatch):
    """Threads import it here."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("stoker_test_plugin", None)


WORKING = [Threads(2), Processes(2), Processes(2, start="fork"), Processes(2, start="spawn")]


@pytest.mark.parametrize("workers", WORKING, ids=repr)
def test_whatever_is_raised_arrives_in_its_place_and_no_worker_dies(workers, caplog):
    """Also what only a worker can import, what unpickles to an exit, and what is no ordinary error."""
    with Loader(RaisingAll(2 * len(RAISED)), 1, workers=workers) as loader:
        found = errors_of(iter(loader))
    assert all(isinstance(error, cls) for error, cls in zip(found, ARRIVES, strict=True)), found
    assert type(found[-2].exceptions[0]) is Exiting
    assert isinstance(workers, Threads) or str(found[-1]) == "PluginError: not here"
    assert [type(error.__cause__) for error in found[3:7]] == [
        *(KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration)
    ]
    assert not caplog.records


def work(item):
    if item % 2:
        raise_for(item // 2)
    return np.array(item)


def test_whatever_is_raised_over_an_item_arrives_in_its_place(caplog):
    with stoker.stream(work, range(2 * len(RAISED)), workers=2) as results:
        found = errors_of(results)
    assert all(isinstance(error, cls) for error, cls in zip(found, ARRIVES, strict=True)), found
    assert not caplog.records


@pytest.mark.parametrize("workers", WORKING, ids=repr)
def test_whatever_is_raised_is_left_out_by_policy(workers, tmp_path):
    file = tmp_path / "quarantine.jsonl"
    with Loader(
        RaisingAll(2 * len(RAISED)), 6, workers=workers, on_error="quarantine", quarantine=file, max_errors=1.0
    ) as loader:
        assert [row for batch in loader for row in batch[:, 0].tolist()] == list(range(0, 2 * len(RAISED), 2))
    assert len(file.read_text().splitlines()) == len(RAISED)


class RaisingClosed(Rows):
    def __getitem__(self, index):
        if index == 2:
            raise Closed("m")
        return self.data[index]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("workers", [Inline(), *WORKING], ids=repr)
def test_an_error_without_attributes_comes_once(workers, on_error):
    got = []
    with Loader(RaisingClosed(5), 1, workers=workers, on_error=on_error) as loader:
        iterator = iter(loader)
        for _ in range(5 if on_error == "raise" else 4):
            try:
                got.append(int(next(iterator)[0, 0]))
            except Exception as error:  # isinstance would ask it for its class
                got.append(type(error))
        assert list(iterator) == []
    expected = Closed if isinstance(workers, Inline | Threads) else RuntimeError  # as far as it can be told
    assert got == ([0, 1, expected, 3, 4] if on_error == "raise" else [0, 1, 3, 4])


def read_file(path):
    number = int(path.rpartition("-")[2])
    if number % 2:
        raise_for(number // 2)
    return [np.array(number)]


def chunks_in(folder, numbers) -> stoker.Chunks:
    files = [folder / f"file-{number:02}" for number in numbers]
    for file in files:
        file.touch()
    return stoker.Chunks(files, read=read_file)


@pytest.mark.parametrize("number", [0, 4, len(RAISED) - 1])
def test_whatever_is_raised_over_a_file_arrives_in_its_place(number, tmp_path, caplog):
    with Loader(chunks_in(tmp_path, [2 * number + 1]), None, shuffle=True, workers=1) as loader:
        iterator = iter(loader)
        with pytest.raises((stoker.ChunkError, RuntimeError)) as caught:
            next(iterator)
        assert isinstance(caught.value.__cause__, (ARRIVES[number], SystemExit))
        assert list(iterator) == []
    assert not caplog.records


def test_whatever_is_raised_over_a_file_is_left_out_by_policy(tmp_path):
    numbers = [number for number in range(2 * len(RAISED)) if number != 7]  # which is Ctrl-C's
    with Loader(chunks_in(tmp_path, numbers), None, workers=1, on_error="skip") as loader:
        assert list(map(int, loader)) == [number for number in numbers if number % 2 == 0]


def test_what_collate_raises_over_samples_of_two_files_does_not_end_the_loop_silently(tmp_path):
    def bad(samples):
        raise StopIteration

    with Loader(chunks_in(tmp_path, [0, 2]), 2, collate=bad) as loader, pytest.raises(RuntimeError, match="StopIter"):
        next(iter(loader))


def test_a_dataset_whose_making_exits_is_an_error_and_no_worker_dies(backend, caplog):
    class Exits(Rows):
        def __init__(self):
            sys.exit(3)

    with Loader(Exits, 5, workers=backend) as loader, pytest.raises(RuntimeError, match=r"raised SystemExit\(3\)"):
        len(loader)
    assert not caplog.records


class ExitsOnArrival(Rows):
    def __setstate__(self, state):
        sys.exit(3)


@pytest.mark.parametrize("start", ["nursery", "spawn"])
def test_a_dataset_whose_unpickling_exits_is_an_error_and_no_worker_dies(start, caplog):
    with Loader(ExitsOnArrival(10), 5, workers=Processes(1, start=start)) as loader:
        with pytest.raises(RuntimeError, match=r"raised SystemExit\(3\)"):
            next(iter(loader))
    assert not caplog.records


class EndsWhoReadsIt:
    def __reduce__(self):
        return sys.exit, (3,)


class Ending(list):
    def __getitem__(self, index):
        return EndsWhoReadsIt() if index == 1 else index


def test_a_batch_that_ends_whoever_unpickles_it_is_an_error_in_its_place():
    with Loader(Ending(range(3)), None, workers=1) as loader:
        batches = iter(loader)
        assert int(next(batches)) == 0
        with pytest.raises(RuntimeError, match=r"SystemExit\(3\)"):
            next(batches)
        assert int(next(batches)) == 2
