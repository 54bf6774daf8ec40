"""Items that one worker alone may do, workers that stay, and random generators that are left alone."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import pytest

from stoker import ClosedError, Inline, Processes, Threads, stream, worker_number
from tests.conftest import BACKENDS


def where(item):
    return item, worker_number()


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_an_item_goes_to_the_worker_that_it_is_for(workers):
    if workers.traits.is_elastic:
        with pytest.raises(ValueError, match="workers come and go"):
            stream(where, range(40), workers=workers, worker_of=lambda item: 0)
        return
    count = workers.n
    with stream(where, range(40), workers=workers, worker_of=lambda item: item % count) as results:
        assert list(results) == [(item, item % count) for item in range(40)]


def test_also_out_of_order():
    with stream(where, range(40), workers=2, in_order=False, worker_of=lambda item: item // 3 % 2) as results:
        assert sorted(results) == [(item, item // 3 % 2) for item in range(40)]


class Waiting:
    """Waits at its first item until somebody opens the other end of a pipe."""

    def __init__(self, path):
        self.path = path

    def __call__(self, item):
        if item == 0:
            os.close(os.open(self.path, os.O_RDONLY))
        return item, worker_number()


@pytest.mark.parametrize("stays", [False, True])
def test_an_item_for_any_worker_stays_with_a_slow_one_if_asked(tmp_path, stays):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    worker_of = (lambda item: None) if stays else None
    with stream(Waiting(path), range(10), workers=2, in_order=False, worker_of=worker_of) as results:
        quick = [next(results) for _ in range(8 if stays else 9)]
        os.close(os.open(path, os.O_WRONLY))
        slow = list(results)
    if stays:
        assert {worker for _, worker in quick} == {1}
        assert slow == [(0, 0), (2, 0)]
    else:  # also the first item, where its worker is so slow to start that the other has it first
        assert sorted(item for item, _ in quick) == list(range(1, 10))
        assert [item for item, _ in slow] == [0]


class Counting:
    """Keeps something from item to item."""

    def __init__(self):
        self.done = 0

    def __call__(self, item):
        self.done += 1
        return self.done


def test_work_may_keep_something_from_item_to_item():
    with stream(Counting(), range(10), workers=Processes(2, start="fork"), worker_of=lambda item: item % 2) as results:
        assert list(results) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_whoever_takes_the_place_of_a_dead_worker_has_its_items():
    with stream(where, range(200), workers=2, worker_of=lambda item: item % 2) as results:
        found = [next(results)]
        os.kill(results.worker_pids[0], signal.SIGKILL)
        assert found + list(results) == [(item, item % 2) for item in range(200)]


@pytest.mark.parametrize("number", [2, -1, "0"])
def test_a_worker_that_does_not_exist_is_an_error(number):
    with stream(where, range(4), workers=2, worker_of=lambda item: number) as results:
        with pytest.raises(ValueError, match=r"worker_of\(item\) returned .*0 to 1"):
            list(results)


def test_what_is_no_function_is_an_error():
    with pytest.raises(TypeError, match="worker_of=3: pass a function"):
        stream(where, [], worker_of=3)


def test_nobody_is_a_worker_outside_of_workers():
    assert worker_number() is None
    with stream(where, [1], workers=Inline()) as results:
        assert next(results) == (1, 0)
        assert worker_number() is None


def test_init_knows_the_number_of_its_worker(tmp_path):
    def init():
        (tmp_path / str(worker_number())).touch()

    with stream(where, range(20), workers=3, init=init) as results:
        list(results)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_workers_stay_for_other_items(workers):
    with stream(abs, [-1, -2], workers=workers, keep_workers=True) as results:
        assert list(results) == [1, 2]
        pids = results.worker_pids
        assert len(results) == 2
        for items in ([-3], [], range(-30, 0)):
            results.restart(items)
            assert list(results) == [abs(item) for item in items]
        assert results.worker_pids == pids


def test_a_restart_in_the_middle_forgets_what_was_under_way():
    with stream(abs, range(-1000, 0), workers=2, keep_workers=True) as results:
        assert [next(results) for _ in range(3)] == [1000, 999, 998]
        results.restart([-5, -6])
        assert list(results) == [5, 6]


def test_without_keep_workers_the_end_is_the_end():
    with stream(abs, [-1]) as results:
        assert list(results) == [1]
        with pytest.raises(ClosedError):
            results.restart([-2])


def test_other_items_must_be_iterable():
    with stream(abs, [-1], keep_workers=True) as results:
        with pytest.raises(TypeError, match="items=7: pass an iterable"):
            results.restart(7)


def test_warm_up_begins_before_anything_is_asked_for():
    pulled = []

    def items():
        for number in range(100):
            pulled.append(number)
            yield number

    with stream(abs, items(), workers=2) as results:
        assert not pulled
        results.warm_up()
        assert 0 < len(pulled) <= 4
        assert list(results) == list(range(100))


def drawn(_):
    return random.random(), np.random.rand()


def seeded():
    random.seed(5)
    np.random.seed(5)


def test_without_a_seed_the_generators_are_the_users_own():
    with stream(drawn, range(4), workers=1, init=seeded, seed=None) as results:
        found = list(results)
    seeded_here, arrays_here = random.Random(5), np.random.RandomState(5)
    assert found == [(seeded_here.random(), arrays_here.rand()) for _ in range(4)]


def test_inline_they_are_this_processs():
    random.seed(7)
    np.random.seed(7)
    with stream(drawn, range(2), seed=None) as results:
        list(results)
    after = random.random(), np.random.rand()
    others = random.Random(7), np.random.RandomState(7)
    assert after == [(others[0].random(), others[1].rand()) for _ in range(3)][-1]


def test_deaths_are_counted():
    with stream(where, range(300), workers=2, keep_workers=True) as results:
        next(results)
        assert results.stats().deaths == 0
        os.kill(results.worker_pids[0], signal.SIGKILL)
        list(results)
        assert results.stats().deaths == 1
