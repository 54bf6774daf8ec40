"""``assert_same``: by container, order, type, dtype, shape and value, with the place of the first difference."""

from __future__ import annotations

import copy
from collections import OrderedDict

import numpy as np
import pytest

from stoker.testing import assert_same
from tests.datasets import Forest, Pair, Record


class Opaque:
    """Has no idea of equality."""

    def __init__(self, value):
        self.value = value


SAME = {
    "every container and leaf": Forest(10)[3],
    "not a number": {"x": np.array([1.0, np.nan]), "y": float("nan"), "z": np.float32("nan")},
    "not a time": np.array(["NaT", "2020-01-01"], "datetime64[D]"),
    "strings": np.array(["a", "bc"]),
    "objects": np.array([{"a": [1, np.nan]}, None], object),
    "records": np.array([(1, np.nan)], [("a", int), ("b", float)]),
    "bare objects": [Opaque([1, {"x": np.arange(3)}])],
    "no values": np.zeros((0, 3)),
    "no dimensions": np.array(3),
    "sets": [{1, 2}, frozenset("ab")],
    "a stream": [[{"x": np.arange(3)}], []],
}


@pytest.mark.parametrize("case", SAME)
def test_copies_are_the_same(case):
    assert_same(copy.deepcopy(SAME[case]), SAME[case])


DIFFERENT = {
    "a value": ([{"x": np.array([[0, 5]])}], [{"x": np.array([[0, 1]])}], "got[0]['x'][0, 1] is 5, not 1; 1 of 2"),
    "NaN": (np.array([np.nan]), np.array([0.0]), "got[0] is nan, not 0.0"),
    "no dimensions": (np.array(3), np.array(4), "got is 3, not 4"),
    "scalars": (np.int64(3), np.int64(4), "got is 3, not 4"),
    "dtype": (np.zeros(2, np.float32), np.zeros(2), "got has dtype float32, not float64"),
    "shape": (np.zeros((2, 1)), np.zeros(2), "got has shape (2, 1), not (2,)"),
    "type": ([1], (1,), "got is [1], a list, not (1,), a tuple"),
    "True is not 1": ({"a": True}, {"a": 1}, "got['a'] is True, a bool, not 1, a int"),
    "number type": (1, 1.0, "a float"),
    "an array for a list": (np.zeros(1), [0.0], "numpy.ndarray"),
    "kind of dict": (OrderedDict(a=1), {"a": 1}, "OrderedDict"),
    "a key": ({"a": 1, "b": 2}, {"a": 1}, "got has the keys ['a', 'b'], not ['a']"),
    "order of keys": ({"b": 2, "a": 1}, {"a": 1, "b": 2}, "keys"),
    "length": ([1, 2, 3], [1, 2], "got has 3 items, not 2"),
    "a string": (["a", "b"], ["a", "c"], "got[1] is 'b', not 'c'"),
    "a field": (Pair(1, [2]), Pair(1, [3]), "got.right[0] is 2, not 3"),
    "of a dataclass": (Record(1, np.zeros(2)), Record(1, np.ones(2)), "got.label[0] is 0.0, not 1.0; 2 of 2"),
    "in an object array": (np.array([[1], "a"], object), np.array([[2], "a"], object), "got.ravel()[0][0] is 1"),
    "in a record": (np.array([(1, 2)], "i4,i4"), np.array([(1, 3)], "i4,i4"), "got['f1'][0] is 2, not 3"),
    "in an object": (Opaque(1), Opaque(2), "vars(got)['value'] is 1, not 2"),
    "None": (None, 0, "got is None, a NoneType"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_is_found_and_named(case):
    got, expected, words = DIFFERENT[case]
    with pytest.raises(AssertionError) as caught:
        assert_same(got, expected)
    assert words in str(caught.value)


def test_long_values_are_cut_short():
    with pytest.raises(AssertionError) as caught:
        assert_same("x" * 10_000, "y" * 10_000)
    assert len(str(caught.value)) < 1000


def test_tensors_are_compared():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        ones = torch.ones(2, 3, dtype=dtype)
        other = ones.clone()
        other[1, 2] = 0
        assert_same([ones.clone()], [ones])
        with pytest.raises(AssertionError, match=r"got\[0\]\[1, 2\] is .*; 1 of 6 values differ"):
            assert_same([other], [ones])
    assert_same(torch.tensor([float("nan")], requires_grad=True), torch.tensor([float("nan")]))
    assert_same(torch.eye(3).to_sparse(), torch.eye(3).to_sparse())
    with pytest.raises(AssertionError, match=r"dtype torch\.float32, not torch\.float64"):
        assert_same(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    with pytest.raises(AssertionError, match=r"torch\.Tensor"):
        assert_same(torch.zeros(2), np.zeros(2, np.float32))


def check_framework(make):
    assert_same(make(np.arange(3, dtype=np.int32)), make(np.arange(3, dtype=np.int32)))
    with pytest.raises(AssertionError, match=r"got\[2\] is 3, not 2; 1 of 3 values differ"):
        assert_same(make(np.array([0, 1, 3], np.int32)), make(np.arange(3, dtype=np.int32)))
    with pytest.raises(AssertionError, match="dtype"):
        assert_same(make(np.zeros(3, np.float32)), make(np.zeros(3, np.int32)))


def test_arrays_of_jax_are_compared():
    check_framework(pytest.importorskip("jax.numpy").asarray)


def test_arrays_of_tensorflow_are_compared():
    check_framework(pytest.importorskip("tensorflow").constant)


def test_arrays_of_tinygrad_are_compared(monkeypatch):
    check_framework(pytest.importorskip("tinygrad").Tensor)
