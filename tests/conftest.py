"""Every test must leave the process as it found it: no child, descriptor, thread or mapping of ours remains."""

from __future__ import annotations

import gc
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
from collections import Counter

import pytest
from hypothesis import settings

from stoker import Inline, Processes, Threads
from stoker.workers.processes.nursery import Nursery
from tests.children import children

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")

# Of tinygrad's devices this one needs nothing. Its CPU device needs a clang that knows all types, as not each does
# ("__bf16 is not supported"); who wants another device tested sets DEV.
os.environ.setdefault("DEV", "PYTHON")

_COLD_FOLDERS = {"lifecycle", "faults"}  # whose tests are about the beginning and the end of processes

_MANY_MODULES = 50  # newly imported: enough to be worth a look at all objects that there are

BACKENDS = [
    Inline(),
    pytest.param(Threads(1), marks=pytest.mark.exhaustive),
    Threads(4),
    pytest.param(Processes(1), marks=pytest.mark.exhaustive),
    Processes(3),
    Processes(2, start="fork"),
    Processes(2, start="spawn"),
]
# A spawned worker differs from others in how it begins and ends. Where that is not the subject it is a case more.
_ABOUT_SPAWN = {"test_deaths.py", "test_startup.py", "test_endings.py", "test_stdio.py", "test_environments.py"}


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
    with open("/proc/self/maps") as maps:
        return sum("memfd:stoker" in line for line in maps)


def _children() -> set[int]:
    return {child.pid for child in children()}


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")}


class _Imports:
    """Exempts what imports have left from garbage collection.

    With torch, JAX and TensorFlow loaded, a collection after each test takes longer than the test itself.
    """

    frozen = 0  # modules that were loaded at the last look

    @classmethod
    def freeze(cls):
        if len(sys.modules) - cls.frozen >= _MANY_MODULES:
            gc.collect()
            gc.freeze()
            cls.frozen = len(sys.modules)


def pytest_configure():
    """Not when this module is imported, as it is in workers whose dataset is defined in a test."""
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
    for item in items:
        if item.path.parent.name in _COLD_FOLDERS or item.path.stem.endswith("_lifecycle"):
            item.add_marker("cold_nursery")
        if "spawn" in item.name.partition("[")[2] and item.path.name not in _ABOUT_SPAWN:
            item.add_marker("exhaustive")


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
    _Imports.freeze()
    if request.node.get_closest_marker("cold_nursery"):
        _WarmNursery.let_go()
    else:
        _WarmNursery.keep()
    before = _descriptors(), _mappings(), _children()
    yield
    gc.collect()
    assert _children() <= before[2], "a process was left behind"
    assert not _threads(), "a thread was left behind"
    assert not _descriptors() - before[0], "a descriptor was left behind"
    if _mappings() > before[1]:
        gc.collect()  # a thread may have ended since, and have held what holds itself
    assert _mappings() <= before[1], "a mapping was left behind"


@pytest.fixture(params=BACKENDS, ids=repr)
def backend(request):
    """Each place where workers can live; ``Inline`` is the oracle of the others."""
    return request.param
