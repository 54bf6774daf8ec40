"""After each test no file of a cache is open or mapped."""

from __future__ import annotations

import gc
import os
import threading

import pytest


def _held() -> list[str]:
    held = []
    for fd in os.listdir("/proc/self/fd"):
        if os.path.islink(f"/proc/self/fd/{fd}"):
            held.append(os.readlink(f"/proc/self/fd/{fd}"))
    with open("/proc/self/maps") as maps:
        held += [line.strip() for line in maps]
    return [one for one in held if ".samples" in one or "/lock" in one]


@pytest.fixture(autouse=True)
def no_file_of_a_cache_is_left_open():
    yield
    if _held():
        for thread in threading.enumerate():  # on a busy machine, one may still be at a batch when its loader is closed
            if thread.name.startswith("stoker"):
                thread.join()
        gc.collect()
        assert _held() == []


@pytest.fixture
def log(tmp_path):
    """Where a ``Counted`` notes its calls."""
    return tmp_path / "calls"


@pytest.fixture
def path(tmp_path):
    """Of a cache."""
    return tmp_path / "cache"
