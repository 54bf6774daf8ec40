"""Locks on bytes of a file: threads and processes exclude each other, and whoever dies holds nothing."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from stoker.memory import MappedFile
from stoker.stores.locks import Locks

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")  # of JAX, if an earlier test has loaded it


@pytest.fixture
def opened(tmp_path):
    """Opens the file anew at each call, as each worker does."""
    fds = []

    def open_it() -> Locks:
        fds.append(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
        return Locks(fds[-1])

    yield open_it
    for fd in fds:
        os.close(fd)


def in_a_child(work) -> tuple[int, int]:
    """Runs ``work(say)`` in a forked process that then waits to be killed; gives its pid and a pipe to hear it by."""
    ear, mouth = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(ear)
            work(lambda: os.write(mouth, b"."))
            signal.pause()
        finally:
            os._exit(1)
    os.close(mouth)
    return pid, ear


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_who_has_opened_the_file_for_himself_excludes_others(opened):
    one, other = opened(), opened()
    one.take(3)
    assert not other.try_take(3)
    assert other.try_take(4), "another byte is another lock"
    one.release(3)
    assert other.try_take(3)


def test_bytes_may_lie_far_behind_the_end(opened):
    one, other = opened(), opened()
    assert one.try_take(2**40)
    assert not other.try_take(2**40)


def test_many_may_share_what_none_may_take_alone(opened):
    one, other, third = opened(), opened(), opened()
    one.take(3, shared=True)
    other.take(3, shared=True)
    assert not third.try_take(3)
    one.release(3)
    assert not third.try_take(3)
    other.release(3)
    assert third.try_take(3)


def test_what_was_taken_alone_may_be_shared_afterwards(opened):
    one, other = opened(), opened()
    assert one.try_take(3)
    one.take(3, shared=True)
    other.take(3, shared=True)
    assert not one.try_take(3), "it is shared now"


def test_it_can_be_seen_whether_a_lock_is_held_without_touching_it(opened):
    one, other = opened(), opened()
    assert not other.is_held(3)
    one.take(3, shared=True)
    assert other.is_held(3)
    assert not one.is_held(3), "one's own does not count"
    one.release(3)
    assert not other.is_held(3)


def test_threads_exclude_each_other(opened):
    counter, count = [0], 200

    def work(locks: Locks) -> None:
        for _ in range(count):
            with locks.holding(1):
                seen = counter[0]
                os.sched_yield()  # an invitation to be overtaken
                counter[0] = seen + 1

    threads = [threading.Thread(target=work, args=(opened(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter == [4 * count]


def test_processes_exclude_each_other(opened, tmp_path):
    number = tmp_path / "number"
    number.write_text("0")

    def work(say) -> None:
        locks = Locks(os.open(tmp_path / "file", os.O_RDWR))
        for _ in range(100):
            with locks.holding(1):
                number.write_text(str(int(number.read_text()) + 1))
        say()

    opened()
    children = [in_a_child(work) for _ in range(3)]
    for pid, ear in children:
        assert os.read(ear, 1) == b"."
        os.close(ear)
        killed(pid)
    assert number.read_text() == "300"


def test_what_is_mapped_keeps_the_locks_of_a_file_that_was_closed_unless_they_are_released(opened, tmp_path):
    (tmp_path / "file").write_bytes(bytes(4096))
    fd = os.open(tmp_path / "file", os.O_RDWR)
    locks, mapping = Locks(fd), MappedFile(fd, 4096)
    locks.take(1)
    locks.take(2, shared=True)
    locks.release_all()
    os.close(fd)
    assert not opened().is_held(1)
    assert not opened().is_held(2)
    del mapping


@pytest.mark.parametrize("shared", [False, True])
def test_death_frees_what_was_held_and_wakes_who_waits(opened, tmp_path, shared):
    def work(say) -> None:
        Locks(os.open(tmp_path / "file", os.O_RDWR)).take(7)
        say()

    mine = opened()
    pid, ear = in_a_child(work)
    assert os.read(ear, 1) == b"."
    assert mine.is_held(7)
    killer = threading.Timer(0.05, killed, [pid])
    killer.start()
    mine.take(7, shared=shared)
    killer.join()
    os.close(ear)


def test_an_error_within_frees_it(opened):
    one, other = opened(), opened()
    with pytest.raises(LookupError):
        with one.holding(1):
            raise LookupError
    assert other.try_take(1)


def test_ctrl_c_ends_a_wait(opened):
    one, other = opened(), opened()
    one.take(1)
    interrupt = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        other.take(1)
    interrupt.join()
