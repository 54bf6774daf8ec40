"""What frameworks iterate in the end, and the traces that they leave in a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported, which would else look for models

_HERE = Path(__file__).parent

_EXPECTED_WARNINGS = [
    "ignore:This DataLoader will create:UserWarning",  # on one core
    "ignore:'set_vital' is deprecated:UserWarning",  # torchdata's constructor calls what torch has deprecated
    "ignore:os.fork:RuntimeWarning",  # JAX, if a test of another folder has loaded it; torch's loader forks
]


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == _HERE:
            for warning in _EXPECTED_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture
def iterated(monkeypatch):
    """The types of all iterators of loaders that a test makes, torch's, torchdata's and ours, in order."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from tests.torch_frameworks.iterators import noting

    types = []
    monkeypatch.setattr(_BaseDataLoaderIter, "__init__", noting(types))
    return types


@pytest.fixture(scope="session")
def first_process_group():
    """It leaves a pipe, and those that follow do not."""
    distributed = pytest.importorskip("torch.distributed", reason="torch is not installed")
    store = distributed.TCPStore("localhost", 0, world_size=1, is_master=True)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    distributed.destroy_process_group()


@pytest.fixture
def one_process(first_process_group):
    """Lightning leaves the process group that it begins, and the variables that say where it is."""
    before = dict(os.environ)
    yield
    import torch.distributed

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
