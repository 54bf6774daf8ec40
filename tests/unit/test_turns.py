"""Turns: who may use an engine, and who ends it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stoker.errors import ClosedError
from stoker.turns import Turns


class FakeFeed:
    def __init__(self) -> None:
        self.interrupted = threading.Event()
        self.careful = 0

    def interrupt(self) -> None:
        self.interrupted.set()

    def be_careful(self) -> None:
        self.careful += 1

    def is_moving_here(self) -> bool:
        return False


class FakeEngine:
    def __init__(self) -> None:
        self.feed: FakeFeed | None = FakeFeed()
        self.is_closed, self.is_ours = False, True

    def check_usable(self) -> None:
        if self.is_closed:
            raise ClosedError("it was closed")


class Bench:
    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.ends: list[int] = []  # the threads that have ended all
        self.turns = Turns("loader", self.engine, lambda: self.ends.append(threading.get_ident()))

    def close(self) -> None:
        self.engine.is_closed = True
        self.turns.close()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_whoever_has_the_turn_gets_what_comes_of_the_work_and_can_take_another(bench):
    assert [bench.turns.take(lambda: 1), bench.turns.take(lambda: 2)] == [1, 2]
    assert bench.ends == []


def test_nobody_has_a_turn_within_another(bench):
    with pytest.raises(RuntimeError, match="this loader is just being asked for something else"):
        bench.turns.take(lambda: bench.turns.take(lambda: 1))
    assert bench.turns.take(lambda: 2) == 2


def test_nobody_has_a_turn_once_it_was_closed(bench):
    bench.close()
    assert len(bench.ends) == 1
    with pytest.raises(ClosedError):
        bench.turns.take(lambda: pytest.fail("it was closed"))


def test_work_that_closes_it_is_finished_first_and_then_all_is_ended(bench):
    def work() -> list[int]:
        bench.close()
        return list(bench.ends)

    assert bench.turns.take(work) == []
    assert bench.ends == [threading.get_ident()]


def test_whoever_closes_it_has_the_other_thread_leave_and_waits_for_that(bench):
    is_at_it, order = threading.Event(), []

    def work() -> None:
        is_at_it.set()
        assert bench.engine.feed.interrupted.wait(30)
        order.append("left")

    other = threading.Thread(target=bench.turns.take, args=(work,))
    other.start()
    assert is_at_it.wait(30)
    bench.close()
    order.append("closed")
    other.join()
    assert order == ["left", "closed"]
    assert threading.get_ident() in bench.ends


def test_all_that_close_it_at_once_are_told_that_the_other_thread_has_left(bench, monkeypatch):
    monkeypatch.setattr("stoker.turns._LOOK_AGAIN_S", 3600.0)
    is_at_it, have_looked = threading.Event(), threading.Barrier(3)
    bench.engine.feed.interrupt = lambda: have_looked.wait(30)  # type: ignore[method-assign]

    def work() -> None:
        is_at_it.set()
        have_looked.wait(30)

    other = threading.Thread(target=bench.turns.take, args=(work,))
    closing = [threading.Thread(target=bench.close, daemon=True) for _ in range(2)]
    other.start()
    assert is_at_it.wait(30)
    for thread in closing:
        thread.start()
    for thread in (other, *closing):
        thread.join(30)
    assert not any(thread.is_alive() for thread in closing)


def test_an_error_gives_the_turn_back_and_an_interrupt_makes_the_engine_careful(bench):
    def raising(error: BaseException) -> Any:
        raise error

    with pytest.raises(ValueError, match="no"):
        bench.turns.take(lambda: raising(ValueError("no")))
    assert bench.engine.feed.careful == 0
    with pytest.raises(KeyboardInterrupt):
        bench.turns.take(lambda: raising(KeyboardInterrupt()))
    assert bench.engine.feed.careful == 1
    assert bench.turns.take(lambda: 1) == 1
