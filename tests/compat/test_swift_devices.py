"""``start(device=..., to_device=...)``: batches are moved, ahead of the consumer, and so many at most."""

from __future__ import annotations

import functools
import pickle
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.compat.numbered import make
from tests.devices.fake import FakeDevice


class Pair(NamedTuple):
    left: Any
    right: Any


def nested(samples: list[int]) -> dict[str, Any]:
    return {"array": np.array(samples), "pair": Pair([np.ones(2)], (len(samples), "word")), "words": np.array(["a"])}


def with_tensor(samples: list[int]) -> list[Any]:
    import torch

    return [torch.tensor(samples), nested(samples)]


ROUTES = {
    "plain": {},
    "collate_fn": {"collate_fn": np.array},
    "encoder": {"batch_encoder": np.ndarray.tobytes, "batch_decoder": functools.partial(np.frombuffer, dtype=int)},
}


@pytest.mark.parametrize("route", ROUTES)
def test_by_default_batches_stay_numpy(route):
    with make(6, **ROUTES[route]) as loader:
        loader.start(0)
        assert [(type(batch), batch.tolist()) for batch in loader] == [(np.ndarray, [0, 1, 2]), (np.ndarray, [3, 4, 5])]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ["cpu", "meta"])
def test_with_a_device_they_are_tensors_on_it(route, name):
    torch = pytest.importorskip("torch")
    with make(6, **ROUTES[route]) as loader:
        loader.start(0, torch.device(name))
        batches = list(loader)
    assert [(batch.device.type, tuple(batch.shape), batch.dtype) for batch in batches] == [
        (name, (3,), torch.int64)
    ] * 2
    if name == "cpu":
        assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("encoded", [False, True])
def test_arrays_and_tensors_are_moved_however_nested(encoded):
    torch = pytest.importorskip("torch")
    coding = {"batch_encoder": pickle.dumps, "batch_decoder": pickle.loads} if encoded else {}
    with make(3, collate_fn=with_tensor, **coding) as loader:
        loader.start(0, device="meta")
        ((tensor, rest),) = list(loader)
    moved = [tensor, rest["array"], rest["pair"].left[0]]
    assert all(isinstance(leaf, torch.Tensor) and leaf.device.type == "meta" for leaf in moved)
    assert type(rest["pair"]) is Pair
    assert rest["pair"].right == (3, "word")
    assert rest["words"].tolist() == ["a"]


@pytest.mark.parametrize("route", ROUTES)
def test_to_device_gets_the_device_if_it_takes_two_arguments(route):
    class Moving:
        def __call__(self, batch, device):
            return device, batch.tolist()

    expected = [[0, 1, 2], [3, 4, 5]]
    for to_device in (lambda batch, device: (device, batch.tolist()), Moving()):
        for device in ("there", None):
            with make(6, **ROUTES[route]) as loader:
                loader.start(0, device, to_device)
                assert list(loader) == [(device, numbers) for numbers in expected]
    for to_device in (lambda batch: batch.tolist(), np.ndarray.tolist):
        with make(6, **ROUTES[route]) as loader:
            loader.start(0, to_device=to_device)
            assert list(loader) == expected


@pytest.mark.parametrize("route", ROUTES)
def test_it_runs_in_a_thread_and_its_errors_come_in_their_turn(route):
    threads = set()

    def to_device(batch):
        threads.add(threading.current_thread() is threading.main_thread())
        if batch[0] == 3:
            raise OSError("the device fell off")
        return batch.tolist()

    with make(9, **ROUTES[route]) as loader:
        loader.start(0, to_device=to_device)
        iterator = iter(loader)
        assert next(iterator) == [0, 1, 2]
        with pytest.raises(OSError, match="fell off"):
            next(iterator)
    assert threads == {False}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("most", [1, 3])
def test_no_more_than_max_nb_batch_on_device_are_ahead(most, route):
    device = FakeDevice()
    with make(60, max_nb_batch_on_device=most, **ROUTES[route]) as loader:
        loader.start(0, device, device.to_device)  # which gives InFlights
        for step, batch in enumerate(loader):
            device.handed_over += 1
            device.wait_for(device.handed_over + most)
            assert batch.tolist() == [step * 3, step * 3 + 1, step * 3 + 2]
    assert device.most_ahead <= most + 1  # the one that is in the consumer's hands was not counted yet


def test_one_ahead_is_the_default():
    device = FakeDevice()
    with make(60) as loader:
        loader.start(0, device, device.to_device)
        for _ in loader:
            device.handed_over += 1
            device.wait_for(device.handed_over + 1)
    assert device.most_ahead <= 2


def test_to_device_must_be_callable():
    with make() as loader, pytest.raises(TypeError, match="to_device='cuda': pass a function"):
        loader.start(0, to_device="cuda")


def test_a_device_needs_torch(monkeypatch):
    monkeypatch.setattr("stoker.bridges.find_spec", lambda name: None)
    with make() as loader, pytest.raises(ImportError, match=r"pip install stoker\[torch\]"):
        loader.start(0, "cuda")
