"""Tensors that are more than an array can hold: they travel whole; torch stacks them, or an error says how."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import stoker
from stoker import CollateError, Loader, Processes
from stoker.bridges import bridge
from stoker.collation import collate
from stoker.collation.columns import made
from stoker.collation.tensors import copied, is_plain_tensor, quantizer, tensor_as_array

torch = pytest.importorskip("torch", reason="torch is not installed")


class Own(torch.Tensor):
    """A class of the user's own."""


class Unwrapping(torch.Tensor):
    """As torchvision's images: what an operation makes of it is a plain tensor."""

    __torch_function__ = torch._C._disabled_torch_function_impl


EYE = torch.eye(4)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what is a prototype, in beta or deprecated says so
    QUANTIZED = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.quint8)
    OTHERWISE_QUANTIZED = torch.quantize_per_tensor(torch.arange(4.0), 0.25, 1, torch.quint8)
    BY_CHANNEL = torch.quantize_per_channel(EYE, torch.full((4,), 0.1), torch.zeros(4, dtype=int), 0, torch.qint8)
    COMPRESSED = {
        "CSR": EYE.to_sparse_csr(),
        "CSC": EYE.to_sparse_csc(),
        "BSR": EYE.to_sparse_bsr((2, 2)),
        "BSC": EYE.to_sparse_bsc((2, 2)),
    }
    NESTED = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    JAGGED = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    MKLDNN = EYE.to_mkldnn()

STACKED = {
    "quantized": QUANTIZED,
    "sparse": EYE.to_sparse(),
    "meta": torch.ones(3, device="meta"),
    "of a class": torch.ones(3).as_subclass(Own),
}
REFUSED = {"quantized by channel": BY_CHANNEL, **COMPRESSED, "nested": NESTED, "jagged": JAGGED, "mkldnn": MKLDNN}


def told(tensor):
    """All that tells such tensors apart."""
    scale = str(tensor.qscheme()) + str(quantizer(tensor)) if tensor.is_quantized else ""
    if tensor.is_meta:
        values = ()
    elif tensor.is_nested:
        values = [part.tolist() for part in tensor.unbind()]
    else:
        values = (tensor.dequantize() if tensor.is_quantized else tensor.to_dense()).tolist()
    return type(tensor), tensor.dtype, tensor.layout, tensor.device, tensor.requires_grad, scale, values


class Holding:
    """A dataset that gives what it holds."""

    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.sample


@pytest.mark.parametrize("kind", STACKED)
def test_torch_stacks_what_no_array_can_hold(kind):
    tensor = STACKED[kind]
    for got in (made(collate([{"x": tensor}] * 2)), stoker.pad([{"x": tensor}] * 2)):
        assert told(got["x"]) == told(torch.stack([tensor, tensor]))


@pytest.mark.parametrize("kind", REFUSED)
def test_what_torch_cannot_stack_is_an_error_that_names_leaf_and_remedy(kind):
    for collated in (partial(collate, indices=[7, 9]), stoker.pad):
        with pytest.raises(CollateError, match=r"sample\['x'\] is a .*(to_dense|dequantize).*collate="):
            collated([{"x": REFUSED[kind]}] * 2)


def test_quantized_tensors_of_several_scales_are_an_error_and_are_not_rounded():
    with pytest.raises(CollateError, match=r"sample\[0\].*0\.5, 1\) in sample 7.*0\.25, 1\) in sample 9"):
        collate([[QUANTIZED], [OTHERWISE_QUANTIZED]], [7, 9])


@pytest.mark.filterwarnings("ignore")  # what is in beta says so where it is unpickled, too
def test_tensors_of_all_kinds_travel_whole_in_datasets_and_in_batches():
    """Through worker processes: in the dataset itself, and as what a collate of the user's gives."""
    tensors = {**STACKED, **REFUSED, "parameter": torch.nn.Parameter(torch.ones(2)), "learning": torch.ones(2)}
    del tensors["mkldnn"]  # which torch cannot pickle
    tensors["learning"].requires_grad_()
    with Loader(Holding(tensors), 2, workers=Processes(1), collate=lambda samples: samples[0]) as loader:
        (batch,) = loader
    assert {kind: told(tensor) for kind, tensor in batch.items()} == {
        kind: told(tensor) for kind, tensor in tensors.items()
    }


def test_what_torch_cannot_pickle_is_named():
    def converting(samples):
        return {"x": samples[0].to_mkldnn()}

    with (
        Loader(Holding(EYE), 2, workers=Processes(1), collate=converting) as loader,
        pytest.raises(stoker.ShippingError, match=r"batch\['x'\] is a Tensor that cannot be pickled"),
    ):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, stoker.Threads(1), Processes(1)], ids=repr)
def test_a_batch_requires_a_gradient_if_its_samples_do_and_is_a_leaf(workers):
    parts = [torch.ones(2), torch.ones(2, requires_grad=True) * 3]
    with Loader(parts, 2, workers=workers) as loader:
        (batch,) = loader
    assert batch.requires_grad
    assert batch.is_leaf
    assert batch.tolist() == [[1, 1], [3, 3]]
    (batch**2).sum().backward()
    assert batch.grad.tolist() == [[2, 2], [6, 6]]


def test_bits_of_conjugation_and_negation_are_values():
    for tensor in (torch.tensor([1 + 2j]).conj(), torch._neg_view(torch.ones(2))):
        assert torch.equal(made(collate([tensor, tensor])), torch.stack([tensor, tensor]))


def test_a_class_that_unwraps_is_stacked_as_arrays_are():
    samples = [torch.full((2,), float(k)).as_subclass(Unwrapping) for k in range(2)]
    got = made(collate(samples))
    assert type(got) is torch.Tensor
    assert got.tolist() == [[0, 0], [1, 1]]
    assert stoker.pad([samples[0], torch.ones(3)]).shape == (2, 3)


def test_what_no_array_can_hold_is_no_array():
    for tensor in (QUANTIZED, EYE.to_sparse(), STACKED["meta"], *REFUSED.values()):
        assert not is_plain_tensor(tensor)
        with pytest.raises(TypeError, match="more than an array can hold"):
            tensor_as_array(tensor)


@pytest.mark.parametrize("kind", [*STACKED, *REFUSED])
def test_special_tensors_pass_through_bridges_and_copies(kind):
    tensor = {**STACKED, **REFUSED}[kind]
    assert told(copied(tensor)) == told(tensor)
    assert bridge("torch")({"x": tensor})["x"] is tensor
    if kind != "of a class":  # whose elements are all there
        assert bridge("numpy")({"x": tensor})["x"] is tensor


def test_a_leaf_that_requires_a_gradient_is_one_on_its_device_too():
    batch = bridge("torch", "meta")([torch.ones(2, requires_grad=True), np.ones(2)])
    assert [tensor.requires_grad for tensor in batch] == [True, False]
    assert batch[0].is_leaf
