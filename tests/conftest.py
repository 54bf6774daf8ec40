"""Every test must leave the process as it found it: no child, descriptor, thread or mapping of ours remains."""

from __future__ import annotations

import gc
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections import Counter

import pytest
from hypothesis import settings

from stoker import Auto, Inline, Processes, Threads
from stoker.workers.processes.lifelines import HAS_PIDFD
from stoker.workers.processes.nursery import Nursery
from tests.children import child_pids

# `make test` tries the same examples each time, so that what it says of a change is about the change;
# `make test-all` looks for new ones.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("new examples", deadline=None, print_blob=True)

# Of tinygrad's devices this one needs nothing. Its CPU device needs a clang that knows all types, as not each does
# ("__bf16 is not supported"); who wants another device tested sets DEV.
os.environ.setdefault("DEV", "PYTHON")

# Threads of OpenMP, which torch computes with, wait by spinning: where more tests run than there are cores, that takes
# three quarters of the time. Read when the library is loaded, so set before anything imports torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_COLD_FOLDERS = {"lifecycle", "faults"}  # whose tests are about the beginning and the end of processes

_MANY_MODULES = 50  # newly imported: enough to be worth a look at all objects that there are
_ENDING_S = 3.0  # for threads of torch's own loader to close their pipes
_MANY_TESTS = 100  # of each of which pytest keeps some fifty objects

BACKENDS = [
    Inline(),
    pytest.param(Threads(1), marks=pytest.mark.exhaustive),
    Threads(4),
    pytest.param(Processes(1), marks=pytest.mark.exhaustive),
    Processes(3),
    pytest.param(Auto(2, 4), marks=pytest.mark.exhaustive),
    Processes(2, start="fork"),
    Processes(2, start="spawn"),
]
# A spawned worker differs from others in how it begins and ends. Where that is not the subject it is a case more.
_ABOUT_SPAWN = {"test_deaths.py", "test_startup.py", "test_endings.py", "test_stdio.py", "test_environments.py"}
# A forked one has what its parent had, too. These are about what workers do, whoever they are.
_FORK_IS_MORE = {"rotation", "stores", "items", "observe"}


def _descriptors() -> Counter[str]:
    kinds: Counter[str] = Counter()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue  # the one that listdir itself had open
        if target.startswith(("pipe:", "socket:", "anon_inode:[pidfd]", "/memfd:stoker")):
            kinds[target.split("[")[0]] += 1
    return kinds


def _mappings() -> int:
    with open("/proc/self/maps", "rb") as maps:
        return maps.read().count(b"memfd:stoker")


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")}


class _OldObjects:
    """Exempts from garbage collection what is there to stay: what imports have left, and what pytest keeps of tests.

    With torch, JAX and TensorFlow loaded, a collection after each test takes longer than the test itself.
    """

    modules = 0  # that were loaded at the last look,
    tests = 0  # and those that ran since

    @classmethod
    def freeze(cls):
        cls.tests += 1
        if len(sys.modules) - cls.modules >= _MANY_MODULES or cls.tests >= _MANY_TESTS:
            gc.collect()
            gc.freeze()
            cls.modules, cls.tests = len(sys.modules), 0


def pytest_configure(config):
    """Not when this module is imported, as it is in workers whose dataset is defined in a test."""
    settings.load_profile("same examples" if config.option.markexpr else "new examples")
    # Whatever names a semaphore first starts a process for it, with a pipe that this one keeps: no test's own.
    multiprocessing.resource_tracker.ensure_running()
    # A script that runs the tests in the background leaves SIGINT ignored, and Ctrl-C is part of what is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _WarmNursery:
    """Keeps the nursery alive between tests: to start one takes longer than most tests that need it.

    A test of how processes begin and end has the marker ``cold_nursery``, or is in a folder of such: it finds none.
    """

    held: Nursery | None = None

    @classmethod
    def keep(cls):
        if not HAS_PIDFD:  # forced by tests/systems: there is none
            return
        if cls.held is not None and (Nursery._shared is not cls.held or cls.held._process.poll() is not None):
            cls.let_go()  # a test has ended it, or found it ended
        if cls.held is None:
            cls.held = Nursery.shared()

    @classmethod
    def let_go(cls):
        held, cls.held = cls.held, None
        if held is not None:
            held.release()


@pytest.hookimpl(tryfirst=True)  # before the marked ones are left out
def pytest_collection_modifyitems(items):
    with_a_nursery = {_function(item) for item in items if _is_of(item, "nursery")}
    for item in items:
        if item.path.parent.name in _COLD_FOLDERS or item.path.stem.endswith("_lifecycle"):
            item.add_marker("cold_nursery")
        if _is_of(item, "spawn") and item.path.name not in _ABOUT_SPAWN:
            item.add_marker("exhaustive")
        if _is_of(item, "fork") and item.path.parent.name in _FORK_IS_MORE and _function(item) in with_a_nursery:
            item.add_marker("exhaustive")


def _function(item) -> str:
    return item.nodeid.partition("[")[0]


def _is_of(item, start: str) -> bool:
    """Whether it is the case of workers that are started so."""
    return start in item.nodeid.partition("[")[2]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """Lone surrogates, which tests of texts log, cannot be sent from one process of the tests to another."""
    report = (yield).get_result()
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]


@pytest.fixture(scope="session", autouse=True)
def nursery_ends_with_the_tests():
    yield
    _WarmNursery.let_go()


@pytest.fixture(autouse=True)
def nothing_left_behind(request):
    _OldObjects.freeze()
    if request.node.get_closest_marker("cold_nursery"):
        _WarmNursery.let_go()
    else:
        _WarmNursery.keep()
    before = _descriptors(), _mappings(), child_pids() | child_pids()  # twice, as a list may lack somebody
    yield
    gc.collect()
    multiprocessing.forkserver._forkserver._stop()  # Python's own, which torch's loader may have started
    assert child_pids() <= before[2], "a process was left behind"
    assert not _threads(), "a thread was left behind"
    deadline = time.monotonic() + _ENDING_S
    while _descriptors() - before[0] and time.monotonic() < deadline:
        time.sleep(0.02)  # torch's queues are closed by threads of their own, which nobody can wait for
    assert not _descriptors() - before[0], "a descriptor was left behind"
    if _mappings() > before[1]:
        gc.collect()  # a thread may have ended since, and have held what holds itself
    assert _mappings() <= before[1], "a mapping was left behind"


@pytest.fixture(params=BACKENDS, ids=repr)
def backend(request):
    """Each place where workers can live; ``Inline`` is the oracle of the others."""
    return request.param
