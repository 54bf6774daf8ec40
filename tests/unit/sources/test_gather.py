"""Rows that are gathered at once are what they would have been one by one; what is not surely so is not gathered."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.collation import collate
from stoker.collation.columns import made
from stoker.sources.gather import gathered
from stoker.sources.indexed import Indexed
from stoker.sources.tables import Table

INDICES = [7, 0, 3, 3, 9, 1]
DTYPES = [np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64]


def one_by_one(dataset):
    return made(collate([dataset[index] for index in INDICES]))


def assert_same(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        got, expected = tuple(got.values()), tuple(expected.values())
    if isinstance(expected, tuple):
        for mine, theirs in zip(got, expected, strict=True):
            assert_same(mine, theirs)
        return
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(10,), (10, 3), (10, 2, 3), (10, 0)])
def test_rows_of_arrays_are_gathered(dtype, shape):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for dataset in (array, Table({"x": array, "y": np.arange(10)})):
        rows = gathered(dataset, INDICES)
        assert rows is not None
        assert_same(made(collate(rows)), one_by_one(dataset))


def test_rows_of_tensors_are_gathered():
    torch = pytest.importorskip("torch")
    from torch.utils.data import Subset, TensorDataset

    x, y = torch.arange(30.0).reshape(10, 3), torch.arange(10)
    whole = TensorDataset(x, y, x.bfloat16(), x > 3)
    for dataset in (
        whole,
        Subset(whole, list(range(10))[::-1]),
        Subset(Subset(whole, range(10)), y),
        Table({"x": x}),
        x,
    ):
        rows = gathered(dataset, INDICES)
        assert rows is not None
        assert_same(made(collate(rows)), one_by_one(dataset))


@pytest.mark.parametrize(
    "dataset",
    [
        np.array(["a", "bb"] * 5),
        np.array([None, 1] * 5),
        np.zeros(10, ">i4"),
        np.zeros(10, "M8[s]"),
        np.zeros(10, [("a", int)]),
        np.zeros(10, complex),
        np.ma.masked_array(np.zeros(10), [True] * 10),
        np.zeros((3, 10)).T,
        np.zeros(5),  # the indices are not all in it
        list(range(10)),
        Table({"x": np.zeros(10), "names": list("abcdefghij")}),
    ],
)
def test_other_rows_come_one_by_one(dataset):
    assert gathered(dataset, INDICES) is None


def test_negative_and_few_indices_come_one_by_one():
    assert gathered(np.zeros(10), [0, 1, -1, 2]) is None
    assert gathered(np.zeros(10), [0, 1]) is None


def test_tensors_that_are_more_than_their_elements_come_one_by_one():
    torch = pytest.importorskip("torch")
    from torch.utils.data import Subset, TensorDataset

    class Own(TensorDataset):
        def __getitem__(self, index):
            return "its own"

    plain = torch.zeros(10, 3)
    for tensor in (plain.clone().requires_grad_(), torch.zeros(3, 10).T, plain.to(torch.complex64), plain.to_sparse()):
        assert gathered(TensorDataset(plain, tensor), INDICES) is None
    assert gathered(Own(plain), INDICES) is None
    assert gathered(Subset(Own(plain), range(10)), INDICES) is None


def test_a_subset_that_points_outside_names_the_sample():
    pytest.importorskip("torch")
    from torch.utils.data import Subset

    dataset = Subset(np.zeros(10), [*range(9), 10])
    with pytest.raises(IndexError) as caught:
        Indexed(dataset).fetch(range(10))
    assert "stoker: dataset.__getitems__([0, 1, 2, 3, ... 10 in all]) raised it" in caught.value.__notes__


def test_a_collate_of_ones_own_gets_a_list_of_samples():
    rows = Indexed(np.arange(20).reshape(10, 2)).fetch(INDICES).samples
    assert [row.tolist() for row in list(rows)] == [[2 * index, 2 * index + 1] for index in INDICES]
    assert rows[1].tolist() == [0, 1]
    assert len(rows) == len(INDICES)
