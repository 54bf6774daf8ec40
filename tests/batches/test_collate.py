"""``stoker.collate``: what a loader makes of samples by default, for code of one's own."""

from __future__ import annotations

from collections import OrderedDict
from importlib.util import find_spec

import numpy as np
import pytest

import stoker
from stoker import CollateError, Inline, Loader, Processes, Threads
from tests.datasets import Encoded, Forest, Pair, Record, Rows
from tests.streams import assert_same

FORMS = {
    "arrays": [np.arange(3), np.arange(3)],
    "scalars of numpy": [np.float32(1), np.float32(2)],
    "numbers": [1, 2.5],
    "strings": ["a", "b"],
    "bytes": [b"a", b""],
    "None": [None, None],
    "objects": [object, int],
    "dicts": [{"x": np.zeros(2), "y": 1}, {"x": np.ones(2), "y": 2}],
    "ordered dicts": [OrderedDict(a=1), OrderedDict(a=2)],
    "lists": [[1, "a"], [2, "b"]],
    "tuples": [(np.zeros(1), 1), (np.ones(1), 2)],
    "namedtuples": [Pair(1, [2]), Pair(3, [4])],
    "dataclasses": [Record(np.zeros(2), "a"), Record(np.ones(2), "b")],
    "a tree of everything": [Forest(9)[k] for k in range(9)],
    "mappings": [Encoded(4)[k] for k in range(4)],
    "one": [{"x": np.arange(2)}],
    "arrays of no size": [np.zeros((0, 2)), np.zeros((0, 2))],
    "masked arrays": [np.ma.masked_array([1, 2], [True, False])] * 2,
}


@pytest.mark.parametrize("samples", FORMS.values(), ids=FORMS.keys())
def test_a_batch_is_what_a_loader_makes_of_the_same_samples(samples):
    with Loader(samples, len(samples)) as loader:
        (expected,) = loader
        assert_same(stoker.collate(samples), expected)
        assert_same(stoker.collate(tuple(samples)), expected)
        assert_same(stoker.collate(iter(samples)), expected)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("kind", ["plain", "bfloat16", "0-d", "with a gradient", "sparse", "strided", "in a dict"])
def test_tensors_are_what_a_loader_makes_of_them(kind):
    import torch

    samples = {
        "plain": [torch.arange(3), torch.arange(3)],
        "bfloat16": [torch.ones(2, dtype=torch.bfloat16)] * 2,
        "0-d": [torch.tensor(1.5), torch.tensor(2.5)],
        "with a gradient": [torch.ones(2, requires_grad=True), torch.zeros(2)],
        "sparse": [torch.eye(2).to_sparse()] * 2,
        "strided": [torch.arange(6).reshape(2, 3).T] * 2,
        "in a dict": [{"x": torch.ones(2), "y": 1}] * 2,
    }[kind]
    with Loader(samples, 2) as loader:
        (expected,) = loader
    assert_same(stoker.collate(samples), expected)


@pytest.mark.parametrize("rows", [np.arange(6).reshape(3, 2), [np.arange(2)] * 3, [{"x": np.arange(2)}] * 2], ids=repr)
def test_a_batch_shares_no_memory_with_the_samples(rows):
    before = stoker.collate(rows)
    batch = stoker.collate(rows)
    stoker.map_leaves(lambda leaf: leaf.fill(-1), batch)
    assert_same(stoker.collate(rows), before)


def test_one_array_holds_a_sample_in_each_row():
    rows = np.arange(6).reshape(3, 2)
    assert_same(stoker.collate(rows), rows)


@pytest.mark.parametrize("wrong", [5, None, "text", b"bytes", {"x": [1, 2]}], ids=repr)
def test_what_is_no_list_of_samples_is_an_error(wrong):
    with pytest.raises(TypeError, match=rf"called with a {type(wrong).__name__}: pass a list of samples"):
        stoker.collate(wrong)


@pytest.mark.parametrize("nothing", [[], (), iter([]), np.zeros((0, 3))], ids=["list", "tuple", "iterator", "array"])
def test_no_samples_are_an_error(nothing):
    with pytest.raises(ValueError, match="without samples: pass one sample at least"):
        stoker.collate(nothing)


def test_samples_that_do_not_fit_together_are_an_error_that_names_them():
    with pytest.raises(CollateError, match=r"ragged.*\(2,\) in sample 0 and \(3,\) in sample 1.*collate=stoker.pad"):
        stoker.collate([np.zeros(2), np.zeros(3)])


def tagged(samples):
    """As people write it around torch's ``default_collate``."""
    return {"rows": stoker.collate(samples), "count": len(samples)}


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_it_can_be_called_in_a_collate_function_of_ones_own(workers):
    with Loader(Rows(10), 5, workers=workers, collate=tagged) as loader:
        first, second = [{"rows": batch["rows"].tolist(), "count": batch["count"]} for batch in loader]
    assert [row[0] for row in first["rows"] + second["rows"]] == list(range(10))
    assert first["count"] == 5


def test_to_pass_it_as_collate_is_to_leave_collate_out():
    """So that nobody who spells the default out gets a slower loader."""
    with Loader(Forest(8), 4, collate=stoker.collate) as loader, Loader(Forest(8), 4) as default:
        assert_same(list(loader), list(default))
        assert repr(loader) == repr(default)
