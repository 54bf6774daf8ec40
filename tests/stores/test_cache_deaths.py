"""Killed at any moment, a cache is never read torn: what was not committed is made again, and nothing else."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import traceback
from collections.abc import Iterator

import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.stores import cache_file, locks
from stoker.stores.cache_folder import IN_USE
from stoker.stores.cache_inventory import Findings
from stoker.testing import chaos
from tests.stores.caching import Counted, assert_whole, calls, expected, verified
from tests.streams import assert_same, epochs, kept

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")  # of JAX, if an earlier test has loaded it

N = 300
POINTS = 50


@contextlib.contextmanager
def consumer(run) -> Iterator[tuple[int, int]]:
    """A forked process with a group of its own, which is killed at the end with all its children: pid, and a pipe to
    hear it by."""
    ear, mouth = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            os.close(ear)
            run(lambda: os.write(mouth, b"."))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(mouth)
    try:
        yield pid, ear
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while os.read(ear, 1000):  # to the end: its workers are gone, too
            pass
        os.close(ear)


@pytest.mark.parametrize(
    "workers", [Inline(), pytest.param(Threads(2), marks=pytest.mark.exhaustive), Processes(2, start="fork")], ids=repr
)
def test_consumers_are_killed_at_random_points_of_filling(workers, path, log):
    """Each goes on where the last one was killed; when all is there, it is begun anew."""
    chance, cache, unfinished = random.Random(7), Cache(path), 0
    for point in range(POINTS // 3 + 1):

        def run(say, seed=point):
            with Loader(Counted(N, log), 4, shuffle=True, seed=seed, workers=workers, cache=cache) as loader:
                for _ in loader:
                    say()

        with consumer(run) as (_, ear):
            for _ in range(chance.randrange(N // 4)):
                os.read(ear, 1)
        found = verified(path)
        assert not any(one.is_damaged for one in found)
        if found == [Findings(sound=N)]:
            (path / "all.samples").unlink()
        else:
            unfinished += 1
    assert unfinished > POINTS // 6
    with Loader(Counted(N, log), 4, workers=2, cache=cache) as loader:
        assert_same(epochs(loader, 2), expected(Counted(N), cache, 2))
    assert_whole(path, N)


@pytest.mark.parametrize("start", ["nursery", "fork"])
def test_workers_are_killed_at_random_points_of_filling(start, path, log):
    chance, cache, killed = random.Random(8), Cache(path), 0
    with Loader(Counted(N, log), 4, workers=Processes(3, start=start), cache=cache, max_deaths=100) as loader:
        got = []
        for number, batch in enumerate(loader):
            got.append(kept(batch))
            if number % 3 == 0 and loader.worker_pids:
                with contextlib.suppress(ProcessLookupError):  # killed before, and not yet heard of
                    os.kill(chance.choice(loader.worker_pids), signal.SIGKILL)
                    killed += 1
        assert_same([got, *epochs(loader, 1)], expected(Counted(N), cache, 2))
    made = calls(log)
    assert killed >= POINTS // 3
    assert min(made.values()) == 1
    assert sum(made.values()) - N <= 4 * killed, "a batch each, at most"
    assert_whole(path, N)


def test_workers_come_to_harm_in_other_ways_too(path):
    cache = Cache(path, refresh_every=2)
    with Loader(Counted(60), 3, shuffle=True, workers=Processes(3), cache=cache, max_deaths=9) as loader:
        disturbed = chaos(loader, faults=0.5, seed=3)
        got = [[kept(batch) for batch in disturbed] for _ in range(5)]
    assert_same(got, expected(Counted(60), cache, 5, 3, shuffle=True))
    assert disturbed.survived.total() > 5
    assert not any(one.is_damaged for one in verified(path))


# Ctrl-C


def test_after_ctrl_c_at_any_moment_no_lock_is_left_and_it_goes_on(path):
    """In a process of its own, since it also comes while Python tidies up, which then complains."""
    cache, due = Cache(path), expected(Counted(60), Cache(path), 1)[0]

    def run(say):
        chance, moments = random.Random(9), 0
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for _ in range(40):
            with Loader(Counted(60), 4, cache=cache) as loader:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.01))
                    for _ in loader:
                        pass
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    moments += 1
                    assert held_locks(path) <= {IN_USE}
                loader.set_epoch(0)
                assert_same(list(loader), due)
            assert_whole(path, 60)
            (path / "all.samples").unlink()
        assert moments > 20
        say()

    with consumer(run) as (_, ear):
        assert os.read(ear, 1) == b"."


def held_locks(path) -> set[int]:
    if not (path / "all.samples").exists():
        return set()
    fd = os.open(path / "all.samples", os.O_RDONLY)
    try:
        return {byte for byte in range(100) if locks.Locks(fd).is_held(byte)}
    finally:
        os.close(fd)


# At each single step


def killed_at(step: int, monkeypatch) -> None:
    """From now on this process counts each thing that it does to the file, and kills itself at that one."""
    left = [step]

    def counted(function):
        def call(*args):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args)

        return call

    monkeypatch.setattr(locks.fcntl, "fcntl", counted(locks.fcntl.fcntl))
    monkeypatch.setattr(cache_file.os, "pwrite", counted(os.pwrite))
    monkeypatch.setattr(cache_file.os, "posix_fallocate", counted(os.posix_fallocate))
    monkeypatch.setattr(cache_file.os, "fstat", counted(os.fstat))


def test_killed_at_each_step_of_filling_it_is_never_torn_and_nobody_waits_for_the_dead(path, log, monkeypatch):
    """Each lock, each write and each look at the file, one after the other."""
    cache, due = Cache(path), expected(Counted(8), Cache(path), 2)
    for step in range(1, 1000):

        def run(say, step=step):
            killed_at(step, monkeypatch)
            with Loader(Counted(8), 4, cache=cache) as loader:
                list(loader)
                say()

        with consumer(run) as (_, ear):
            finished = os.read(ear, 1) == b"."
        assert not any(one.is_damaged for one in verified(path))
        with Loader(Counted(8, log), 4, workers=Threads(2), cache=cache) as loader:
            assert_same(epochs(loader, 2), due)
        assert max(calls(log).values(), default=1) == 1
        assert_whole(path, 8)
        (path / "all.samples").unlink(), log.unlink(missing_ok=True)
        if finished:
            break
    assert 20 < step < 500
