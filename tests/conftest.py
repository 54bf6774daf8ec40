"""Every test must leave the process as it found it: no child, descriptor, thread or mapping of ours remains."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter

import psutil
import pytest
from hypothesis import settings

from stoker import Inline, Processes, Threads

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")

BACKENDS = [
    Inline(),
    Threads(1),
    Threads(4),
    Processes(1),
    Processes(3),
    Processes(2, start="fork"),
    Processes(2, start="spawn"),
]


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
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = _descriptors(), _mappings(), _children()
    yield
    gc.collect()
    assert _children() <= before[2], "a process was left behind"
    assert not _threads(), "a thread was left behind"
    assert not _descriptors() - before[0], "a descriptor was left behind"
    assert _mappings() <= before[1], "a mapping was left behind"


@pytest.fixture(params=BACKENDS, ids=repr)
def backend(request):
    """Each place where workers can live; ``Inline`` is the oracle of the others."""
    return request.param
