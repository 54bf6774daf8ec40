"""Each way to start workers gives the same batches."""

from __future__ import annotations

import gc
import multiprocessing
import os

import pytest

from tests.torch_front.datasets import Failing, Numbers, Scaled, Split, identity, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

METHODS = ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.exhaustive)]


def scale(worker):
    data.get_worker_info().dataset.factor = 10


@pytest.mark.parametrize("method", METHODS)
def test_a_start_method_by_name(loader_class, method):
    loader = loader_class(Numbers(7), batch_size=2, num_workers=2, multiprocessing_context=method)
    assert numbers(loader) == list(range(7))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("module", [multiprocessing, torch.multiprocessing], ids=["multiprocessing", "torch"])
def test_a_context_as_an_object(loader_class, method, module):
    context = module.get_context(method)
    loader = loader_class(Split(7), batch_size=None, num_workers=1, multiprocessing_context=context)
    assert loader.multiprocessing_context is context
    assert list(loader) == list(range(7))


@pytest.mark.parametrize("method", METHODS)
def test_worker_init_fn_with_each_method(loader_class, method):
    loader = loader_class(Scaled(3), batch_size=3, num_workers=1, multiprocessing_context=method, worker_init_fn=scale)
    assert values(loader) == [[0, 10, 20]]


@pytest.mark.parametrize("method", METHODS)
def test_errors_with_each_method(loader_class, method):
    loader = loader_class(
        Failing(KeyError("bad sample"), at=0), num_workers=1, multiprocessing_context=method, collate_fn=identity
    )
    with pytest.raises(KeyError, match="bad sample") as raised:
        list(loader)
    assert "Caught KeyError in DataLoader worker process 0" in str(raised.value)


@pytest.mark.parametrize("method", METHODS)
def test_seeds_with_each_method(loader_class, method):
    torch.manual_seed(11)
    with torch.random.fork_rng():
        base = torch.empty((), dtype=torch.int64).random_().item()
    loader = loader_class(InitialSeed(2), batch_size=None, num_workers=2, multiprocessing_context=method)
    assert list(loader) == [base, base + 1]


class InitialSeed(Numbers):
    def __getitem__(self, index):
        return torch.initial_seed()


class Unpicklable(Numbers):
    """As an open file, a database or a lambda."""

    def __init__(self, count):
        super().__init__(count)
        self.transform = lambda index: index * 2

    def __reduce__(self):
        raise TypeError("cannot pickle this dataset")

    def __getitem__(self, index):
        return self.transform(index)


def test_fork_needs_no_pickling(loader_class):
    loader = loader_class(Unpicklable(3), batch_size=3, num_workers=1, multiprocessing_context="fork")
    assert values(loader) == [[0, 2, 4]]


def test_the_default_is_fork_and_needs_no_pickling(loader_class):
    """As long as Python's own default is fork: up to 3.13."""
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("this Python starts processes otherwise")
    assert values(loader_class(Unpicklable(3), batch_size=3, num_workers=1)) == [[0, 2, 4]]


@pytest.mark.filterwarnings("ignore:Got pickle error")
def test_what_cannot_be_pickled_cannot_be_spawned(loader_class):
    loader = loader_class(Unpicklable(3), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(TypeError, match="cannot pickle this dataset"):
        iter(loader)
    gc.collect()


class Global(Numbers):
    value = "as imported"

    def __getitem__(self, index):
        return type(self).value


def test_forked_workers_have_what_this_process_has(loader_class, monkeypatch):
    monkeypatch.setattr(Global, "value", "changed here")
    loader = loader_class(Global(1), batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert list(loader) == ["changed here"]


def test_by_default_workers_have_what_this_process_has(loader_class, monkeypatch):
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("this Python starts processes otherwise")
    monkeypatch.setattr(Global, "value", "changed here")
    assert list(loader_class(Global(1), batch_size=None, num_workers=1)) == ["changed here"]


def test_a_method_set_later_is_used(loader_class):
    loader = loader_class(Numbers(2), num_workers=1)
    loader.multiprocessing_context = "fork"
    assert values(loader) == [[0], [1]]


def test_an_open_file_in_the_dataset_works(loader_class, tmp_path):
    (tmp_path / "file").write_bytes(b"abcdef")

    class Reading(Numbers):
        def __init__(self, file):
            super().__init__(6)
            self.file = file

        def __getitem__(self, index):
            return os.pread(self.file.fileno(), 1, index)

    with open(tmp_path / "file", "rb") as file:
        loader = loader_class(Reading(file), batch_size=None, num_workers=2)
        assert list(loader) == [b"a", b"b", b"c", b"d", b"e", b"f"]
