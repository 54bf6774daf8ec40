"""Samples of every type that torch collates or converts, by name: each is a batch of two or three."""

from __future__ import annotations

import collections
import types
import warnings
from collections import OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

Point = namedtuple("Point", ["x", "y"])


class TensorPoint(namedtuple("TensorPoint", ["x", "y"])):
    """A namedtuple whose constructor wants what torch can make a tensor of."""

    __slots__ = ()

    def __new__(cls, x, y=0):
        return super().__new__(cls, torch.as_tensor(x), y)


class Own(torch.Tensor):
    """A tensor class of the user's own."""


class OwnDict(dict):
    """A dict with an attribute, and without a constructor that takes a dict."""

    def __init__(self, name):
        super().__init__()
        self.name = name


class OwnList(list):
    """A list of the user's own."""


class OwnTuple(tuple):
    """A tuple of the user's own."""

    __slots__ = ()


class OwnInt(int):
    """A number of the user's own."""


class OwnStr(str):
    """A text of the user's own."""

    __slots__ = ()


class Frozen(collections.abc.Mapping):
    """A mapping that cannot be changed."""

    def __init__(self, content):
        self.content = dict(content)

    def __getitem__(self, key):
        return self.content[key]

    def __iter__(self):
        return iter(self.content)

    def __len__(self):
        return len(self.content)


class Stubborn(Frozen):
    """A mapping that cannot be made of another."""

    def __init__(self, one, two):
        super().__init__({"one": one, "two": two})


class Immutable(collections.abc.Sequence):
    """A sequence that cannot be changed."""

    def __init__(self, content):
        self.content = list(content)

    def __getitem__(self, index):
        return self.content[index]

    def __len__(self):
        return len(self.content)


def own_dict(value):
    made = OwnDict("name")
    made["a"] = value
    return made


TENSOR_DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.float8_e4m3fn, torch.float8_e5m2),
]

ARRAY_DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def tensor_of(dtype, start):
    return torch.tensor([start, start + 1, 0]).to(dtype)


def _tensors():
    return {
        "0-d tensors": [torch.tensor(1.5), torch.tensor(2.5)],
        "empty tensors": [torch.zeros(0), torch.zeros(0)],
        "tensors of zero size": [torch.zeros(3, 0, 2, dtype=torch.int32)] * 2,
        "4-d tensors": [torch.arange(24.0).reshape(1, 2, 3, 4), torch.ones(1, 2, 3, 4)],
        "transposed tensors": [torch.arange(6).reshape(2, 3).t(), torch.ones(3, 2, dtype=torch.int64)],
        "strided tensors": [torch.arange(10)[::3], torch.arange(4)],
        "expanded tensors": [torch.ones(1).expand(4), torch.zeros(4)],
        "views of one tensor": list(torch.arange(12).reshape(3, 4)),
        "NaN and infinity": [torch.tensor([float("nan"), float("inf")]), torch.tensor([-0.0, 0.0])],
        "conjugated tensors": [torch.tensor([1 + 2j]).conj(), torch.tensor([3 + 4j])],
        "one tensor twice": [torch.arange(3)] * 2,
        "large tensors": [torch.arange(70_000), torch.zeros(70_000, dtype=torch.int64)],
    }


def _arrays():
    return {
        "0-d arrays": [np.array(1.5), np.array(2.5)],
        "empty arrays": [np.zeros((0, 3)), np.zeros((0, 3))],
        "2-d arrays": [np.arange(6).reshape(2, 3), np.ones((2, 3), dtype=int)],
        "arrays in the order of Fortran": [np.asfortranarray(np.arange(6).reshape(2, 3))] * 2,
        "strided arrays": [np.arange(10)[::3], np.arange(4)],
        "numpy floats": [np.float32(1.5), np.float32(2.5)],
        "numpy doubles": [np.float64(1.5), np.float64(2.5)],
        "numpy halves": [np.float16(1.5), np.float16(2.5)],
        "numpy integers": [np.int16(1), np.int16(2)],
        "numpy unsigned": [np.uint8(1), np.uint8(255)],
        "numpy bools": [np.bool_(True), np.bool_(False)],
        "numpy complex": [np.complex64(1 + 2j), np.complex64(2)],
    }


def _numbers():
    return {
        "integers": [1, 2, 3],
        "large integers": [2**62, -(2**62)],
        "floats": [1.5, 2.5],
        "NaN": [float("nan"), float("inf")],
        "bools": [True, False],
        "integers, then a float": [1, 2.5],
        "floats, then an integer": [1.5, 2],
        "a bool, then an integer": [True, 5],
        "integers of a class": [OwnInt(1), OwnInt(2)],
        "texts": ["a", "bc", ""],
        "bytes": [b"a", b"bc"],
        "texts of a class": [OwnStr("a"), OwnStr("b")],
        "numpy texts": [np.str_("a"), np.str_("b")],
    }


def _mappings():
    return {
        "dicts": [{"b": 1, "a": torch.ones(2)}, {"a": torch.zeros(2), "b": 2}],
        "dicts with other keys besides": [{"a": 1}, {"a": 2, "z": 3}],
        "dicts with keys of all kinds": [{1: 1, None: 2, (1, 2): 3}] * 2,
        "empty dicts": [{}, {}],
        "OrderedDict": [OrderedDict(b=1, a=2), OrderedDict(a=3, b=4)],
        "defaultdict": [defaultdict(list, a=1), defaultdict(list, a=2)],
        "UserDict": [UserDict(a=1), UserDict(a=2)],
        "dicts of a class": [own_dict(1), own_dict(2)],
        "Counter": [collections.Counter("aab"), collections.Counter("ab")],
        "mappings that cannot change": [Frozen({"a": 1}), Frozen({"a": 2})],
        "mappings that cannot be made": [Stubborn(1, 2), Stubborn(3, 4)],
        "mapping proxies": [types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})],
        "ChainMap": [collections.ChainMap({"a": 1}, {"b": 2}), collections.ChainMap({"a": 3}, {"b": 4})],
    }


def _sequences():
    return {
        "tuples": [(1, 2.5), (3, 4.5)],
        "lists": [[1, 2.5], [3, 4.5]],
        "empty tuples": [(), ()],
        "empty lists": [[], []],
        "tuples of one": [(1,), (2,)],
        "namedtuples": [Point(1, 2.5), Point(3, 4.5)],
        "namedtuples of tensors": [Point(torch.ones(2), "a"), Point(torch.zeros(2), "b")],
        "namedtuples with a constructor": [TensorPoint([1, 2]), TensorPoint([3, 4], 5)],
        "lists of a class": [OwnList([1, 2]), OwnList([3, 4])],
        "tuples of a class": [OwnTuple([1, 2]), OwnTuple([3, 4])],
        "UserList": [UserList([1, 2]), UserList([3, 4])],
        "deque": [deque([1, 2]), deque([3, 4])],
        "ranges": [range(2), range(2, 4)],
        "sequences that cannot change": [Immutable([1, 2]), Immutable([3, 4])],
        "bytearrays": [bytearray(b"ab"), bytearray(b"cd")],
        "a list, then a tuple": [[1, 2], (3, 4)],
        "a tuple, then a list": [(1, 2), [3, 4]],
    }


def _nested():
    return {
        "dict of lists of tuples": [{"a": [(1, "x"), 2.5]}, {"a": [(2, "y"), 3.5]}],
        "tuple of dicts": [({"a": torch.ones(1)}, {"b": np.ones(2)})] * 2,
        "namedtuple of namedtuples": [Point(Point(1, 2), [3]), Point(Point(4, 5), [6])],
        "image, label and name": [(torch.rand(3, 4, 4), 1, "one"), (torch.rand(3, 4, 4), 2, "two")],
        "list of lists of lists": [[[[1], [2]]], [[[3], [4]]]],
        "all kinds of numbers": [(1, 1.5, True, np.int8(3), np.float32(2), torch.tensor(4))] * 3,
    }


def _special():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is deprecated says so
        quantized = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.quint8)
    return {
        "channels last": [torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last)] * 2,
        "quantized tensors": [quantized, quantized],
        "tensors of a class": [torch.ones(2).as_subclass(Own), torch.zeros(2).as_subclass(Own)],
        "parameters": [torch.nn.Parameter(torch.ones(2), requires_grad=False)] * 2,
    }


COLLATED = {
    **{f"tensors of {dtype}": [tensor_of(dtype, 1), tensor_of(dtype, 3)] for dtype in TENSOR_DTYPES},
    **{f"arrays of {dtype}": [np.array([1, 0], dtype), np.array([0, 1], dtype)] for dtype in ARRAY_DTYPES},
    **_tensors(),
    **_arrays(),
    **_numbers(),
    **_mappings(),
    **_sequences(),
    **_nested(),
}

SPECIAL = _special()

# What torch's workers cannot send: the first hangs its loop, the others raise errors of its inner parts.
UNSENDABLE = {"mapping proxies", "conjugated tensors", "quantized tensors", "sparse tensors"}

SENDABLE = {name: samples for name, samples in COLLATED.items() if name not in UNSENDABLE}

REFUSED = {
    "None": [None, None],
    "objects": [object, object],
    "sets": [{1}, {2}],
    "functions": [len, len],
    "complex numbers": [1j, 2j],
    "arrays of text": [np.array(["a"]), np.array(["b"])],
    "arrays of objects": [np.array([None]), np.array([None])],
    "arrays of bytes": [np.array([b"a"]), np.array([b"b"])],
    "tensors of different shapes": [torch.zeros(2), torch.zeros(3)],
    "tensors of different dimensions": [torch.zeros(2), torch.zeros(2, 1)],
    "arrays of different shapes": [np.zeros(2), np.zeros(3)],
    "lists of different lengths": [[1, 2], [3]],
    "tuples of different lengths": [(1,), (2, 3)],
    "a dict that lacks a key": [{"a": 1, "b": 2}, {"a": 3}],
    "a number, then a text": [1, "a"],
    "a number, then None": [1, None],
    "a tensor, then a number": [torch.ones(1), 1],
    "a tensor, then an array": [torch.ones(1), np.ones(1)],
    "a dict, then a list": [{"a": 1}, [1]],
    "None in a dict": [{"a": None}, {"a": None}],
    "None in a tuple": [(1, None), (2, None)],
    "integers that are too large": [2**70, 2**71],
    "sparse tensors": [torch.eye(3).to_sparse(), torch.eye(3).to_sparse()],
    "big-endian arrays": [np.arange(3).astype(">i4"), np.arange(3).astype(">i4")],
    "dates": [np.datetime64("2020-01-01"), np.datetime64("2020-01-02")],
    "arrays of dates": [np.array(["2020-01-01"], "M8[D]")] * 2,
    "texts of a user's class": [UserString("a"), UserString("b")],
}

# Refused by a worker with an AttributeError of torch's inner parts, inline with a TypeError.
REFUSED_BY_ACCIDENT = {"a tensor, then a number", "a tensor, then an array"}
