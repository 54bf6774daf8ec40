"""Work that raises, kills or hangs, and items that cannot travel."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import threading

import pytest

import stoker
from stoker import Inline, Processes, ShippingError, Threads, TooManyErrors, WorkerDied
from stoker.testing import chaos
from tests.items import works

pytestmark = pytest.mark.timeout(120)

GOOD = [n for n in range(30) if n % 10 != 3]


def told(error) -> str:
    return "\n".join(getattr(error, "__notes__", []))


def test_an_error_comes_in_its_place_and_who_goes_on_passes_it_over(backend):
    got, errors = [], []
    with stoker.stream(works.failing, iter(range(30)), workers=backend) as results:
        while True:
            try:
                got.append(next(results))
            except KeyError as error:
                errors.append((len(got), error))
            except StopIteration:
                break
    assert got == GOOD
    assert [place for place, _ in errors] == [3, 12, 21]
    for (_, error), number in zip(errors, [3, 13, 23], strict=True):
        assert f"item {number} ends with three" in str(error)
        assert f"work(item) raised it, over item {number}" in told(error)
        if isinstance(backend, Processes):
            assert "in failing" in told(error)  # the worker's own frames


def test_stop_iteration_in_the_work_does_not_end_the_stream_silently(backend):
    with stoker.stream(works.stopping, range(3), workers=backend) as results:
        with pytest.raises(RuntimeError, match="StopIteration"):
            next(results)


def test_items_can_be_left_out(backend):
    with stoker.stream(works.failing, range(30), workers=backend, on_error="skip") as results:
        assert list(results) == GOOD
        assert results.stats().skipped == 3


def test_all_items_may_be_left_out(backend):
    with stoker.stream(works.failing, [3, 13, 23], workers=backend, on_error="skip") as results:
        assert list(results) == []


def test_what_was_left_out_is_written_down(backend, tmp_path):
    file = tmp_path / "bad.jsonl"
    arguments = {"workers": backend, "on_error": "quarantine", "quarantine": file}
    with stoker.stream(works.failing, range(30), **arguments) as results:
        assert list(results) == GOOD
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["index"] for line in lines] == [3, 13, 23]
    assert all("ends with three" in line["error"] and "in failing" in line["traceback"] for line in lines)


def test_not_more_are_left_out_than_may(backend):
    with stoker.stream(works.failing, range(30), workers=backend, on_error="skip", max_errors=1) as results:
        assert list(itertools.islice(results, 12)) == GOOD[:12]
        with pytest.raises(
            TooManyErrors, match=r"^2 items failed; 1 may \(max_errors=1\). The last one was 13: KeyError"
        ):
            next(results)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_item_that_kills_is_given_up_in_its_place(workers):
    with stoker.stream(works.deadly, iter(range(9)), workers=workers, max_deaths=2) as results:
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(WorkerDied, match="SIGKILL") as caught:
            next(results)
        assert list(results) == [6, 7, 8]
    assert list(caught.value.indices) == [5]


@pytest.mark.parametrize("in_order", [True, False])
def test_an_item_that_kills_can_be_left_out(in_order):
    arguments = {"workers": 2, "max_deaths": 2, "on_error": "skip", "in_order": in_order}
    with stoker.stream(works.deadly, iter(range(9)), **arguments) as results:
        assert sorted(results) == [0, 1, 2, 3, 4, 6, 7, 8]
        assert results.stats().skipped == 1


def test_an_item_that_hangs_is_given_up():
    with stoker.stream(works.hanging, iter(range(9)), workers=2, timeout=0.5, max_deaths=1) as results:
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(WorkerDied, match=r"more than 0\.5 s"):
            next(results)
        assert list(results) == [6, 7, 8]


def test_an_item_that_hangs_can_be_left_out():
    with stoker.stream(works.hanging, range(9), workers=2, timeout=0.5, max_deaths=1, on_error="skip") as results:
        assert list(results) == [0, 1, 2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize("start", ["nursery", "fork", "spawn"])
@pytest.mark.parametrize("in_order", [True, False])
def test_killed_workers_lose_and_repeat_nothing(start, in_order):
    chance, got, killed = random.Random(start), [], 0
    arguments = {"workers": Processes(2, start=start), "in_order": in_order, "max_deaths": 50}
    with (
        stoker.stream(works.dice, iter(range(120)), **arguments) as results,
        stoker.stream(works.dice, range(120)) as oracle,
    ):
        for result in results:
            got.append(result)
            if results.worker_pids and chance.random() < 0.1:
                with contextlib.suppress(ProcessLookupError):  # killed before, and not yet noticed
                    os.kill(chance.choice(results.worker_pids), signal.SIGKILL)
                    killed += 1
        assert (got if in_order else sorted(got)) == list(oracle)
    assert killed > 2


def test_it_survives_chaos():
    with stoker.stream(works.dice, range(150), workers=3) as results, stoker.stream(works.dice, range(150)) as oracle:
        disturbed = chaos(results, faults=0.3)
        assert list(disturbed) == list(oracle)
    assert disturbed.survived.total() > 3


@pytest.mark.parametrize(
    "workers", [Processes(1), Processes(2), Processes(2, start="fork"), Processes(2, start="spawn")]
)
def test_an_item_that_cannot_travel_is_an_error_in_its_place(workers):
    items = [0, 1, 2, threading.Lock(), 4, 5]
    with stoker.stream(works.number, iter(items), workers=workers) as results:
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ShippingError, match="an item, a lock, cannot be pickled"):
            next(results)
        assert list(results) == [4, 5]


@pytest.mark.parametrize("workers", [Inline(), Threads(2)])
def test_where_nothing_travels_items_need_not_pickle(workers):
    locks = [threading.Lock() for _ in range(5)]
    with stoker.stream(type(locks[0]).locked, locks, workers=workers) as results:
        assert list(results) == [False] * 5


def test_on_the_way_to_a_device_errors_come_in_their_place():
    def items():
        yield from range(6)
        raise KeyError("no more")

    with stoker.stream(works.failing, items(), workers=Threads(2), to_device=lambda result: result) as results:
        assert list(itertools.islice(results, 3)) == [0, 1, 2]
        with pytest.raises(KeyError, match="ends with three"):
            next(results)
        assert list(itertools.islice(results, 2)) == [4, 5]
        with pytest.raises(KeyError, match="no more"):
            next(results)
        assert list(results) == []
