"""Datasets of many sorts, and arguments of many kinds, which a fingerprint has to tell apart."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import operator
import re
import types
import typing
import uuid
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np


class Images:
    """A dataset as most are: keeps its arguments, and counts something."""

    def __init__(self, root, transform=None, *, size=8):
        self.root, self.transform, self._size = root, transform, size
        self.calls = 0

    def __len__(self):
        return 10

    def __getitem__(self, index):
        self.calls += 1
        return index


class Others(Images):
    pass


class Slotted:
    __slots__ = ("root",)

    def __init__(self, root):
        self.root = root


class Hidden:
    """Its argument is only to be had by a property."""

    def __init__(self, root):
        self._kept = root

    @property
    def root(self):
        return self._kept


@dataclasses.dataclass
class Described:
    root: str
    size: int = 3


class Mode(enum.Enum):
    TRAIN = "train"
    TEST = "test"


class Bits(enum.Flag):
    ONE = 1
    TWO = 2
    FOUR = 4


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Unkept:
    """Its argument has another name inside."""

    def __init__(self, root):
        self.kept, self.file, self.generator = root, None, np.random.default_rng()


class Handed(Unkept):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Reduced:
    __slots__ = ("kept",)

    def __init__(self, root):
        self.kept = root

    def __reduce__(self):
        return Reduced, (self.kept,)


class Stated:
    def __init__(self, root):
        self.kept = root

    def __getstate__(self):
        return "state", self.kept


@dataclasses.dataclass
class Initialized:
    size: int
    root: dataclasses.InitVar[int] = 0

    def __post_init__(self, root):
        self.kept = root


class Listed(list):
    """Has an argument beside its contents."""

    def __init__(self, values, transform):
        super().__init__(values)
        self.transform = transform


Named = collections.namedtuple("Named", "a b")


def resize(image, size=3):
    return image


def enclosing(*values):
    first, second = values
    return lambda image: (image, first, second)


def wrapped(function, size):
    """Has the name of another function, which tells nothing of what it encloses."""

    @functools.wraps(function)
    def call(image):
        return function(image, size)

    return call


def local(size):
    class Local:
        def __getitem__(self, index):
            return size

    return Local


def nested(depth, value):
    return value if depth == 0 else [nested(depth - 1, value)]


# Two of a kind, by 0 and 1: what they are lies elsewhere in each of them, and from one Python to the next.
KINDS = {
    "enum": lambda k: [Mode.TRAIN, Mode.TEST][k],
    "flag": lambda k: [Bits.ONE | Bits.TWO, Bits.ONE | Bits.FOUR][k],
    "int enum": lambda k: [Level.LOW, Level.HIGH][k],
    "int enum or int": lambda k: [Level.LOW, 1][k],
    "enum of a function": lambda k: enum.Enum("Made", {"ONE": k}).ONE,
    "regex": lambda k: re.compile("a" * (k + 1)),
    "flags of a regex": lambda k: re.compile("a", [0, re.IGNORECASE][k]),
    "date": lambda k: datetime.date(2024, 1, 1 + k),
    "datetime": lambda k: datetime.datetime(2024, 1, 1, k, tzinfo=datetime.UTC),
    "timedelta": datetime.timedelta,
    "zone": lambda k: datetime.timezone(datetime.timedelta(hours=k)),
    "uuid": lambda k: uuid.UUID(int=k),
    "decimal": decimal.Decimal,
    "fraction": lambda k: fractions.Fraction(k, 7),
    "path": lambda k: Path("ab"[k]),
    "path of another system": lambda k: [PurePosixPath("a"), PureWindowsPath("a")][k],
    "slice": lambda k: slice(k, 3),
    "range": lambda k: range(k, 3),
    "count": itertools.count,
    "cycle": lambda k: itertools.cycle([k]),
    "chain": lambda k: itertools.chain([0], [k]),
    "repeat": itertools.repeat,
    "product": lambda k: itertools.product([0], [k]),
    "getter": operator.itemgetter,
    "caller": lambda k: operator.methodcaller("resize", k),
    "alias": lambda k: [list[int], list[str]][k],
    "union": lambda k: [int | str, int | bytes][k],
    "typing": lambda k: [typing.Literal[0], typing.Literal[1]][k],
    "method of a type": lambda k: [str.lower, str.upper][k],
    "ufunc": lambda k: [np.add, np.subtract][k],
    "dtype": lambda k: np.dtype(["i4", "i8"][k]),
    "namespace": lambda k: types.SimpleNamespace(a=k),
    "namedtuple": lambda k: Named(0, k),
    "deque": lambda k: collections.deque([k]),
    "defaultdict": lambda k: collections.defaultdict([list, dict][k]),
    "array.array": lambda k: array.array("i", [k]),
    "bytearray": lambda k: bytearray([k]),
    "memoryview": lambda k: memoryview(bytes([0, 1, k, 3]))[::2],
    "bytes": lambda k: b"x" * 1000 + bytes([k]),
    "object array": lambda k: np.array([{"a": k}, None], object),
    "masked array": lambda k: np.ma.array([1, 2], mask=[k, 0]),
    "structured array": lambda k: np.array([(1, k)], np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "Fortran's order": lambda k: np.asfortranarray(np.arange(6).reshape(2, 3) + k),
    "strided array": lambda k: (np.arange(12) + k)[::3],
    "numpy's strings": lambda k: np.array(["a", "bc"[k]]),
    "number of numpy": np.float32,
    "number or number of numpy": lambda k: [1.0, np.float64(1.0)][k],
    "kept under another name": Unkept,
    "handed on": Handed,
    "with a reduce": Reduced,
    "with a getstate": Stated,
    "InitVar": lambda k: Initialized(1, k),
    "list with an argument": lambda k: Listed([1], k),
    "closure with the name of another": lambda k: wrapped(resize, k),
    "cached closure": lambda k: functools.lru_cache(wrapped(resize, k)),
    "class of a function": local,
    "object of a class of a function": lambda k: local(k)(),
    "deep down": lambda k: nested(100, k),
    "set": lambda k: {"one", "two", "three", k},
    "set of pairs": lambda k: {("one", k), ("two", "three")},
    "secret": lambda k: {"password": "ab"[k]},
}
