"""What a stream gives is the same wherever the work is done, and stays as it is."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import stoker
from stoker import Inline, Processes, Threads
from tests.items import works
from tests.lifecycle.scripts import run, write
from tests.streams import assert_same, kept

CASES = {
    "arrays of other sizes": (works.rows, range(30)),
    "trees": (works.forest, ["a", ("b", 2), {"c": [3]}, b"d", 1.5, np.arange(5), frozenset({1})]),
    "None": (works.forest, [None, 0, None, "", False, (), None]),
    "random numbers": (works.dice, range(30)),
    "a closure": (lambda item, offset=7: np.array([item + offset]), range(10)),
    "a partial": (functools.partial(np.full, 3), range(10)),
    "large items": (np.sum, [np.arange(50_000) + n for n in range(5)]),
    "one": (works.rows, [4]),
    "nothing": (works.rows, []),
}


@pytest.mark.parametrize("case", CASES)
def test_the_stream_is_that_of_inline(backend, case):
    work, items = CASES[case]
    with stoker.stream(work, items, workers=backend) as results, stoker.stream(work, items) as oracle:
        got = [kept(result) for result in results]
        assert_same(got, [kept(result) for result in oracle])
    assert len(got) == len(items)


def test_it_is_what_the_work_gives(backend):
    items = CASES["trees"][1]
    with stoker.stream(works.forest, items, workers=backend) as results:
        assert_same([kept(result) for result in results], [works.forest(item) for item in items])


@given(
    items=st.lists(
        arrays.arrays(
            st.one_of(arrays.scalar_dtypes(), arrays.unicode_string_dtypes()),
            arrays.array_shapes(min_dims=0, min_side=0),
        ),
        max_size=6,
    )
)
def test_any_arrays_come_as_they_went(items):
    for workers in (Inline(), Threads(2)):
        with stoker.stream(lambda item: (item, [item]), items, workers=workers) as results:
            assert_same([kept(result) for result in results], [(item, [item]) for item in items])


@pytest.mark.parametrize("seed", [0, 5])
def test_random_numbers_follow_from_the_seed_and_the_items_number(seed):
    def drawn(workers, seed):
        with stoker.stream(works.dice, range(20), workers=workers, seed=seed) as results:
            return [kept(result) for result in results]

    wanted = drawn(0, seed)
    assert len({tuple(draw[1:]) for draw in wanted}) == 20
    for workers in (1, 3, Threads(3)):
        assert drawn(workers, seed) == wanted
    assert drawn(0, seed + 1) != wanted


def test_out_of_order_each_comes_once(backend):
    with stoker.stream(works.number, range(50), workers=backend, in_order=False) as results:
        assert sorted(results) == list(range(50))


def test_out_of_order_a_slow_item_is_overtaken(tmp_path, monkeypatch):
    monkeypatch.setenv("STOKER_TEST_FOLDER", str(tmp_path))
    with stoker.stream(works.slow_first, range(10), workers=Threads(2), in_order=False) as results:
        got = list(results)
    assert sorted(got) == list(range(10))
    assert got.index(0) > got.index(1)


def test_results_that_are_held_never_change(backend):
    held = []
    with stoker.stream(works.rows, range(80), workers=backend, prefetch=1) as results:
        for number, result in enumerate(results):
            if number % 3 == 0:
                held.append((number, result[1:]))
    assert all((view == number).all() for number, view in held)


def test_its_length_is_that_of_the_items():
    with stoker.stream(works.number, range(7)) as results:
        assert len(results) == 7
        next(results)
        assert len(results) == 7
    with stoker.stream(works.number, iter(range(7))) as results, pytest.raises(TypeError, match="have no length"):
        len(results)


def test_results_become_tensors(backend):
    torch = pytest.importorskip("torch")
    with stoker.stream(works.rows, range(6), workers=backend, to="torch") as results:
        for number, tensor in enumerate(results):
            assert isinstance(tensor, torch.Tensor)
            assert tensor.tolist() == works.rows(number).tolist()


def test_a_callable_gets_each_result_in_its_turn(backend):
    seen = []

    def note(result):
        seen.append(result)
        return -result

    with stoker.stream(works.number, range(8), workers=backend, to=note) as results:
        assert list(results) == [-n for n in range(8)]
    assert seen == list(range(8))


def test_an_error_in_the_callable_comes_in_its_place(backend):
    with stoker.stream(works.number, range(4), workers=backend, to=lambda n: 1 / (n - 1)) as results:
        assert next(results) == -1
        with pytest.raises(ZeroDivisionError):
            next(results)
        assert list(results) == [1, 0.5]


def test_figures_count_items():
    with stoker.stream(works.number, range(9), workers=2) as results:
        assert results.worker_pids == []
        list(results)
        stats = results.stats()
    assert (stats.batches, stats.samples, stats.workers) == (9, 9, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"work": 5}, TypeError, "work=5: pass a function"),
        ({"items": 5}, TypeError, "items=5: pass an iterable"),
        ({"workers": -1}, ValueError, "workers=-1"),
        ({"prefetch": 0}, ValueError, "prefetch=0"),
        ({"in_order": 1}, TypeError, "in_order=1"),
        ({"on_error": "ignore"}, ValueError, "on_error='ignore'"),
        ({"on_error": "skip", "max_errors": 0.5}, TypeError, "max_errors=0.5: the number of items is not known"),
        ({"max_errors": 5}, ValueError, "needs on_error"),
        ({"timeout": 0}, ValueError, "timeout=0"),
        ({"to": "nampy"}, ValueError, "to='nampy'"),
        ({"max_deaths": 0}, ValueError, "max_deaths=0"),
    ],
)
def test_bad_arguments_are_errors_at_once(arguments, error, match):
    with pytest.raises(error, match=match):
        stoker.stream(**{"work": works.number, "items": [], **arguments})


def test_work_that_cannot_travel_is_an_error_at_once():
    import threading

    lock = threading.Lock()
    with pytest.raises(stoker.ShippingError):
        stoker.stream(lambda item: lock, [1], workers=Processes(1))


OWN_CLASSES = """
import dataclasses, enum, stoker

@dataclasses.dataclass
class Pair:
    left: int
    right: int

class Kind(enum.Enum):
    TEXT = 1

def work(item):
    return item if isinstance(item, Pair) else item is Kind.TEXT

items = [Pair(0, 1), Kind.TEXT, Pair(2, 3)]
with stoker.stream(work, items, workers=stoker.Processes(2, start=START)) as results:
    print(list(results) == [Pair(0, 1), True, Pair(2, 3)])
"""


@pytest.mark.parametrize("start", ["nursery", "fork", "spawn"])
def test_items_may_be_of_classes_that_the_program_itself_defines(start, tmp_path):
    write(tmp_path, {"train.py": OWN_CLASSES.replace("START", repr(start))})
    assert run(tmp_path, ["train.py"]) == (0, "True\n", "")
