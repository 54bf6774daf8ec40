"""What Ctrl-C and other signals can interrupt, and what they cannot."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time

import numpy as np
import pytest

from stoker.interrupts import Background, Bell, is_interrupt, let_in, put_off


class Rung(Exception):
    pass


def ring(*_):
    raise Rung


def fail():
    raise Rung


class Handlers:
    def method(self, number, frame):
        fail()

    def __call__(self, *args):
        raise Rung


@pytest.fixture
def alarm():
    """Installs a handler of SIGALRM; puts back what was there."""
    before = signal.getsignal(signal.SIGALRM)
    yield functools.partial(signal.signal, signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def raised_by(call) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize(
    "handler",
    [ring, Handlers().method, Handlers(), lambda *_: fail(), functools.partial(lambda me, n, f: fail(), 1)],
    ids=["function", "method", "callable", "lambda", "partial"],
)
def test_what_a_handler_raises_is_an_interrupt(alarm, handler):
    alarm(handler)
    assert is_interrupt(raised_by(lambda: signal.raise_signal(signal.SIGALRM)))


def test_an_interrupt_of_an_import_is_one(alarm, tmp_path, monkeypatch):
    """From its traceback, Python removes what is its own."""
    (tmp_path / "interrupted_import.py").write_text("import signal\nsignal.raise_signal(signal.SIGALRM)\n")
    monkeypatch.syspath_prepend(tmp_path)
    alarm(ring)
    assert is_interrupt(raised_by(lambda: __import__("interrupted_import")))


def test_what_code_raises_with_arrays_at_hand_is_none():
    def failing(*arrays):
        raise ValueError

    assert not is_interrupt(raised_by(lambda: failing(np.arange(3), np.arange(3))))


def test_what_code_raises_is_none_but_for_ctrl_c():
    assert not is_interrupt(raised_by(fail))
    assert not is_interrupt(SystemExit())
    assert is_interrupt(KeyboardInterrupt())


def test_what_is_put_off_comes_at_the_end_and_handlers_are_back(alarm):
    done = []

    def work():
        with put_off():
            signal.raise_signal(signal.SIGALRM)
            done.append("a")
            signal.raise_signal(signal.SIGALRM)
            done.append("b")

    alarm(ring)
    assert is_interrupt(raised_by(work))
    assert done == ["a", "b"]
    assert signal.getsignal(signal.SIGALRM) is ring
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_two_different_signals_both_come(alarm):
    heard = []

    def work():
        with put_off():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGALRM)
            assert not heard

    alarm(lambda *_: heard.append("alarm"))
    with pytest.raises(KeyboardInterrupt):
        work()
    assert heard == ["alarm"]


def test_what_is_let_in_comes_there_and_the_rest_is_put_off_again(alarm):
    alarm(ring)
    with put_off():
        signal.raise_signal(signal.SIGALRM)
        with pytest.raises(Rung):
            with let_in():
                raise AssertionError("it should have come before")
        with pytest.raises(Rung), let_in():
            signal.raise_signal(signal.SIGALRM)
        with put_off():  # within another, it changes nothing
            signal.raise_signal(signal.SIGALRM)
        with pytest.raises(Rung), let_in():
            pass
    assert signal.getsignal(signal.SIGALRM) is ring
    with let_in():
        assert signal.getsignal(signal.SIGALRM) is ring


def test_a_handler_that_is_installed_meanwhile_stays(alarm):
    alarm(ring)
    with put_off():
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN


def test_what_hangs_can_still_be_interrupted(alarm):
    alarm(ring)
    with put_off(0.0), pytest.raises(Rung):
        signal.raise_signal(signal.SIGALRM)


def test_one_whose_end_was_interrupted_does_not_keep_the_next_from_putting_off(alarm):
    alarm(ring)
    done = []

    def work():
        with put_off():
            signal.raise_signal(signal.SIGALRM)
            done.append("a")

    put_off(0.0).__enter__()  # its time is up, so an interrupt can come just before its end
    assert is_interrupt(raised_by(work))
    assert done == ["a"]
    assert signal.getsignal(signal.SIGALRM) is ring


def test_another_thread_puts_nothing_off(alarm):
    alarm(ring)
    entered, leave = threading.Event(), threading.Event()

    def work():
        with put_off(), let_in():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    with pytest.raises(Rung):
        signal.raise_signal(signal.SIGALRM)
    leave.set()
    thread.join()


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_puts_nothing_off(alarm):
    alarm(ring)
    with put_off():
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.raise_signal(signal.SIGALRM)
            except Rung:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def thread_count() -> int:
    """Those that the system has. ``threading``, and ``_thread`` too, count one only once it has come to run."""
    return len(os.listdir("/proc/self/task"))


def test_a_thread_of_ours_is_started_and_joined_in_a_storm(alarm):
    """With ``threading.Thread`` this hangs, or takes a thread that runs for one that has ended."""
    is_armed = False
    rung = 0

    def storm(*_):
        nonlocal rung
        if is_armed:
            rung += 1
            raise Rung

    alarm(storm)
    before = thread_count()
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    for _ in range(100):
        ended = []
        background = Background(lambda ended=ended: ended.append(time.sleep(0.001)), "stoker-test")
        is_armed = True
        try:
            background.start()
        except Rung:
            pass
        finally:
            is_armed = False
        has_ended = False
        while not has_ended:
            try:
                is_armed = True
                has_ended = background.join()
                is_armed = False
            except Rung:
                is_armed = False
        assert ended or not background.has_begun
    assert rung > 10
    # One that was not to begin any more comes up, perhaps late, sees that, and goes.
    while thread_count() > before:
        time.sleep(0.001)


def test_a_thread_does_not_wait_for_itself_and_several_may_wait_for_it():
    go_on, answers = threading.Event(), []

    def work():
        answers.append(background.join())
        go_on.wait()

    background = Background(work, "stoker-test")
    background.start()
    waiting = [threading.Thread(target=lambda: answers.append(background.join())) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert not background.join(0.001)
    go_on.set()
    for thread in waiting:
        thread.join()
    assert answers == [False, True, True, True]


def test_a_thread_that_was_joined_before_it_began_never_does():
    background = Background(lambda: pytest.fail("it began"), "stoker-test")
    assert background.join()
    background.thread.start()
    background.thread.join()


def test_a_bell_that_was_rung_before_does_not_wait_for_longer_than_it_is_told():
    """As ``SimpleQueue`` does: one in some hundred of these waits would never end."""
    for timeout in (1e-9, 1e-7, 1e-6, 5e-6):
        for _ in range(1000):
            bell = Bell()
            bell.ring()
            bell.wait()
            bell.wait(timeout)


def test_the_last_ring_is_for_all_who_wait():
    bell, woken = Bell(), []
    threads = [threading.Thread(target=lambda: woken.append(bell.wait())) for _ in range(20)]
    for thread in threads:
        thread.start()
    bell.ring_for_all()
    for thread in threads:
        thread.join()
    bell.wait()
    assert woken == [None] * 20


def test_a_bell_wakes_whoever_waits_and_is_not_kept_ringing():
    bell = Bell()
    bell.ring()
    bell.ring()
    bell.wait()
    bell.wait(0.001)
