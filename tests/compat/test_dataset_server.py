"""dataset_server's DataLoader: which samples come, in which order, in which form."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pytest

from stoker import CollateError
from tests.compat.served import Broken, Images, Noisy, Numbers, make, pairs, read
from tests.datasets import Ragged


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Record:
    rows: Any


def total(samples: list[int]) -> dict[str, Any]:
    return {"sum": sum(samples), "rows": np.array(samples)}


def tensors(samples: list[int]) -> Any:
    import torch

    return torch.tensor(samples)


def nested(samples: list[int]) -> Any:
    import torch

    rows = torch.tensor(samples)
    return OrderedDict(list=[rows, "word"], pair=Pair(rows, (rows, 3)), record=Record(rows), numbers=np.array(samples))


@pytest.mark.parametrize("workers", [1, 3])
def test_in_order_each_loop_is_an_epoch_whose_last_batch_may_be_short(workers):
    with make(10, 3, workers) as loader:
        assert len(loader) == 4
        assert read(loader, 3) == [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]] * 3


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_the_same_for_any_number_of_workers(shuffle):
    streams = []
    for workers in (1, 3):
        with make(50, 7, workers, Noisy, shuffle=shuffle) as loader:
            streams.append(pairs(loader, 3))
    assert streams[0] == streams[1]


def test_arguments_may_be_given_by_place_in_the_documents_order():
    from stoker.compat.dataset_server import DataLoader

    with DataLoader(
        Numbers, {"n": 6}, 4, 1, 100, 5, 0.01, True, None, False, None, 2, None, None, True, sorted
    ) as loader:
        assert list(loader) == [[0, 1, 2, 3], [4, 5]]


@pytest.mark.parametrize("dataset_class", [Numbers, lambda n: list(range(n)), lambda **params: range(params["n"])])
def test_the_dataset_is_made_by_a_class_or_anything_to_call(dataset_class):
    with make(4, 3, 2, dataset_class) as loader:
        assert read(loader) == [[[0, 1, 2], [3]]]


def test_shuffled_each_epoch_has_each_sample_once_in_another_order():
    with make(100, 7, 2, shuffle=True) as loader:
        orders = [list(chain(*epoch)) for epoch in read(loader, 4)]
    assert all(Counter(order) == Counter(range(100)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    assert max(abs(place - index) for place, index in enumerate(orders[0])) > 50


@pytest.mark.parametrize("window", [1, 5, 1000])
def test_shuffled_nearby_no_sample_moves_as_far_as_that(window):
    with make(60, 7, shuffle=True, nearby_shuffle=window) as loader:
        for epoch in read(loader, 3):
            order = list(chain(*epoch))
            assert Counter(order) == Counter(range(60))
            assert max(abs(place - index) for place, index in enumerate(order)) < window
            assert (order == sorted(order)) == (window == 1)


def test_nothing_is_nearby_that_is_not_shuffled():
    with make(6, 3, nearby_shuffle=4) as loader:
        assert read(loader) == [[[0, 1, 2], [3, 4, 5]]]


def test_arrays_are_joined_along_a_new_first_axis_and_numbers_become_arrays():
    with make(5, 3, 2, Images) as loader:
        batches = list(loader)
    assert [batch["image"].shape for batch in batches] == [(3, 2, 3), (2, 2, 3)]
    assert [batch["label"].tolist() for batch in batches] == [[0, 1, 2], [3, 4]]
    assert batches[1]["image"][:, 0, 0].tolist() == [3.0, 4.0]


def test_so_are_tensors():
    torch = pytest.importorskip("torch")

    class Tensors(Numbers):
        def __getitem__(self, index):
            return torch.full((2,), index)

    with make(4, 3, 1, Tensors) as loader:
        first, last = loader
    assert isinstance(first, torch.Tensor)
    assert (first.tolist(), last.tolist()) == ([[0, 0], [1, 1], [2, 2]], [[3, 3]])


def test_samples_that_do_not_fit_together_are_an_error():
    with make(5, 3, 1, Ragged) as loader, pytest.raises(CollateError, match="ragged"):
        list(loader)


def test_what_collate_fn_gives_is_delivered_as_it_is():
    with make(5, 3, 2, collate_fn=total) as loader:
        batches = list(loader)
    assert [batch["sum"] for batch in batches] == [3, 7]
    assert [batch["rows"].tolist() for batch in batches] == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("options", [{}, {"use_threading": True}, {"max_minibatch_length": 100}])
def test_errors_of_the_dataset_keep_their_type_and_come_in_their_turn(options):
    with make(9, 3, 2, Broken, **options) as loader:
        iterator = iter(loader)
        assert next(iterator).tolist() == [0, 1, 2]
        with pytest.raises(LookupError, match="four is missing"):
            next(iterator)
        assert next(iterator).tolist() == [6, 7, 8]


# max_minibatch_length


@pytest.mark.parametrize("options", [{}, {"use_threading": True}, {"device": "cpu"}, {"device": "meta"}], ids=str)
def test_a_batch_may_have_as_many_bytes_as_max_minibatch_length(options):
    if "device" in options:
        pytest.importorskip("torch")
    with make(9, 4, 2, max_minibatch_length=32, **options) as loader:
        assert [len(batch) for batch in loader] == [4, 4, 1]
    with make(9, 4, 2, max_minibatch_length=31, **options) as loader:
        iterator = iter(loader)
        for _ in range(2):
            with pytest.raises(ValueError, match="32 bytes, more than max_minibatch_length=31 allows: pass a larger"):
                next(iterator)
        assert len(next(iterator)) == 1  # whoever goes on gets those that are smaller


@pytest.mark.parametrize(
    ("collate_fn", "nbytes"),
    [
        (lambda samples: [str(sample) * 4 for sample in samples], 8),
        (lambda samples: {"raw": b"12345", "more": (np.zeros(3), {"word": "é"})}, 31),
        (lambda samples: Pair(np.zeros(2, np.int8), 3), 2),
        (lambda samples: Record(np.zeros(5)), 40),
    ],
)
def test_arrays_strings_and_bytes_count_however_nested(collate_fn, nbytes):
    with make(2, 2, collate_fn=collate_fn, max_minibatch_length=nbytes) as loader:
        assert len(list(loader)) == 1
    with make(2, 2, collate_fn=collate_fn, max_minibatch_length=nbytes - 1) as loader:
        with pytest.raises(ValueError, match=f"{nbytes} bytes"):
            next(iter(loader))


# device, pin_memory


def test_by_default_arrays_stay_numpy():
    with make(3, 3) as loader:
        assert [type(batch) for batch in loader] == [np.ndarray]


@pytest.mark.parametrize("use_threading", [False, True])
@pytest.mark.parametrize("name", ["cpu", "meta"])
def test_with_a_device_they_are_tensors_on_it(name, use_threading):
    torch = pytest.importorskip("torch")
    for device in (name, torch.device(name)):
        with make(4, 3, device=device, use_threading=use_threading) as loader:
            batches = list(loader)
        assert [(batch.device.type, tuple(batch.shape)) for batch in batches] == [(name, (3,)), (name, (1,))]


def test_without_cuda_pinned_batches_are_tensors_and_a_warning_says_so():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is CUDA")
    with pytest.warns(RuntimeWarning, match="no CUDA device") as caught:
        loader = make(4, 3, pin_memory=True)
    assert caught[0].filename.endswith("served.py"), "it should name the line that makes the loader"
    with loader:
        batches = list(loader)
    assert [(type(batch), batch.tolist()) for batch in batches] == [(torch.Tensor, [0, 1, 2]), (torch.Tensor, [3])]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_with_cuda_each_tensor_is_pinned_however_nested(device, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + 100)
    with make(2, 2, collate_fn=nested, pin_memory=True, device=device) as loader:
        (batch,) = loader
    assert type(batch) is OrderedDict
    assert (type(batch["pair"]), type(batch["record"])) == (Pair, Record)
    pinned = [batch["list"][0], batch["pair"].left, batch["pair"].right[0], batch["record"].rows, batch["numbers"]]
    assert [tensor.tolist() for tensor in pinned] == [[100, 101]] * 5
    assert (batch["list"][1], batch["pair"].right[1]) == ("word", 3)


def test_samples_that_hold_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    with make(3, 3, collate_fn=tensors) as loader:
        assert [type(batch) for batch in loader] == [torch.Tensor]
