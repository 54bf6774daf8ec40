"""Each test of this folder runs on the class that sets the standard and on ours."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import multiprocessing.forkserver
import multiprocessing.resource_sharer
import os
import threading
from pathlib import Path

import pytest

_HERE = Path(__file__).parent

if importlib.util.find_spec("torch") is None:  # there is nothing to test
    collect_ignore_glob = ["test_*.py"]

_EXPECTED_WARNINGS = [
    # Tests ask for three workers on machines with two cores.
    "ignore:This DataLoader will create:UserWarning",
    # torchdata's constructor calls what torch has deprecated.
    "ignore:'set_vital' is deprecated:UserWarning",
    # JAX, if a test of another folder has loaded it, warns of each fork; torch's loader forks.
    "ignore:os.fork:RuntimeWarning",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == _HERE:
            for warning in _EXPECTED_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


def _ours():
    from stoker.torch import DataLoader

    return DataLoader


def _oracle():
    from torch.utils.data import DataLoader

    return DataLoader


def _stateful_oracle():
    return pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed").StatefulDataLoader


def _end_what_the_oracle_leaves():
    """Torch's iterators, if an error has made them part of a cycle, wait five seconds for each worker when collected.

    Its queues close their pipes in threads of their own, and indices that are tensors are handed out by another.
    """
    if any(thread.name.startswith("QueueFeederThread") for thread in threading.enumerate()):
        for left in gc.get_objects():
            if type(left).__name__.endswith("MultiProcessingDataLoaderIter") and "stoker" not in type(left).__module__:
                left._shutdown_workers()
        left = None
        gc.collect()
        for thread in threading.enumerate():
            if thread.name.startswith("QueueFeederThread"):
                thread.join(10)
    multiprocessing.resource_sharer.stop(10)  # which was needed, though the queues may have ended by now
    multiprocessing.forkserver._forkserver._stop()


# The standard does not change with our code: that it keeps what a test says of it is looked at by make test-all.
_CLASSES = [pytest.param("torch", marks=pytest.mark.exhaustive), "stoker"]


@pytest.fixture(params=_CLASSES)
def loader_class(request):
    """Torch's DataLoader, and ours."""
    yield _ours() if request.param == "stoker" else _oracle()
    _end_what_the_oracle_leaves()


@pytest.fixture(params=_CLASSES)
def stateful_class(request):
    """StatefulDataLoader of torchdata, and ours."""
    yield _ours() if request.param == "stoker" else _stateful_oracle()
    _end_what_the_oracle_leaves()


@pytest.fixture
def our_class():
    """Ours alone, for what torch does not promise."""
    return _ours()


@pytest.fixture(params=[0, 2], ids=["inline", "2 workers"])
def num_workers(request):
    """In this process, and in workers."""
    return request.param


class Gate:
    """A place where a worker waits until the test lets it pass."""

    def __init__(self, path):
        self.path = str(path)
        os.mkfifo(self.path)

    def open_when_waited_for(self):
        """Lets one worker pass, when it is there."""
        os.close(os.open(self.path, os.O_WRONLY))

    def open(self):
        """Lets a worker pass if one waits."""
        with contextlib.suppress(OSError):  # nobody waits: the worker has been killed
            os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def gate(tmp_path):
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.open()
