"""A dataset is known by its class and arguments: in any process by the same text, and another one by another."""

from __future__ import annotations

import dataclasses
import enum
import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from stoker.stores.fingerprint import describe
from stoker.testing.comparison import difference
from tests.datasets import Augmented, Rows
from tests.stores.trees import SAMPLES


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


def resize(image, size=3):
    return image


def enclosing(*values):
    first, second = values
    return lambda image: (image, first, second)


def with_default(value):
    return lambda image, size=value: image


DIFFERENT = [
    Images,
    Others,
    functools.partial(Images, "a"),
    functools.partial(Images, "b"),
    functools.partial(Images, root="a"),
    functools.partial(Images, "a", size=9),
    functools.partial(functools.partial(Others, "a"), size=9),
    Images("a"),
    Others("a"),
    Images("b"),
    Images(b"a"),
    Images(Path("a")),
    Images("a", size=9),
    Images("a", transform=resize),
    Images("a", transform=functools.partial(resize, size=4)),
    Images("a", transform=functools.partial(resize, size=5)),
    Images("a", transform=enclosing(3, None)),
    Images("a", transform=enclosing(None, 3)),
    Images("a", transform=enclosing(3, 4)),
    Images("a", transform=with_default(3)),
    Images("a", transform=with_default(4)),
    Images("a", transform=lambda image: image + 1),
    Images("a", transform=lambda image: image + 2),
    Images("a", transform=lambda image: -image),
    Images("a", transform=Images("a").__getitem__),
    Images("a", transform=Images("b").__getitem__),
    Images("a", transform=[resize, len]),
    Images("a", transform=(resize, len)),
    Images("a", transform={"train": 1}),
    Images("a", transform={1, 2}),
    Images("a", transform={1, 3}),
    Images("a", transform=Mode.TRAIN),
    Images("a", transform=Mode.TEST),
    Slotted("a"),
    Slotted("b"),
    Hidden("a"),
    Hidden("b"),
    Described("a"),
    Described("a", 4),
    np.arange(6),
    np.arange(6) + 1,
    np.arange(6.0),
    np.arange(6).reshape(2, 3),
    [1, 2, 3],
    [1, 2, 4],
    (1, 2, 3),
    np.array([1, 2, 3], object),
    np.array([1, 2, "3"], object),
    Images(np.arange(6)),
    Images(np.arange(6)[::-1]),
    Images("x" * 200),
    Images("x" * 200 + "y"),
    Images(["a", ["b", ["c", ["d"]]]]),
    Images(["a", ["b", ["c", ["e"]]]]),
]


def test_another_class_or_argument_or_array_or_closure_is_another_text():
    texts = [describe(dataset) for dataset in DIFFERENT]
    alike = [(texts[a], a, b) for a in range(len(texts)) for b in range(a) if texts[a] == texts[b]]
    assert alike == []


def make_all():
    """As the program would make them when it is started again."""
    return [
        functools.partial(Images, "a", size=9),
        Images("a", transform=enclosing(3, np.arange(3))),
        Images("a", transform=lambda word: word in {"one", "two", "three", "four"}),
        Images({"one", "two", "three", "four"}, transform=Mode.TRAIN),
        Images("a", transform=[resize, functools.partial(resize, size=4), len]),
        Images(Images(np.linspace(0, 1, 1000)), transform=object()),
        Described("a"),
        np.arange(6),
        Rows,
        Augmented(3),
    ]


def test_the_same_arguments_are_the_same_text():
    assert [describe(one) for one in make_all()] == [describe(one) for one in make_all()]


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_and_also_in_another_process(seed):
    """Where sets have another order, and objects other addresses."""
    program = "from tests.stores.test_fingerprint import describe, make_all\n"
    program += "for one in make_all(): print(repr(describe(one)))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.splitlines() == [repr(describe(one)) for one in make_all()]


def test_what_is_no_argument_of_the_constructor_does_not_matter():
    dataset = Images("a")
    before = describe(dataset)
    dataset[3]
    dataset.opened = object()
    assert describe(dataset) == before


def test_the_text_names_class_and_arguments():
    assert describe(Images("data/train", size=9)) == (
        "tests.stores.test_fingerprint:Images(root='data/train', transform=None, size=9)"
    )
    assert describe(functools.partial(Images, "a", size=9)) == "tests.stores.test_fingerprint:Images('a', size=9)"


@pytest.mark.parametrize("dataset", [list(range(100_000)), Images("a" * 10**6), [b"a" * 10**6]], ids=lambda _: "")
def test_the_text_is_short_enough_to_be_read(dataset):
    assert len(describe(dataset)) < 2500


@settings(max_examples=100)
@given(one=SAMPLES, other=SAMPLES)
def test_arguments_that_differ_make_a_text_that_differs(one, other):
    told = describe(Images(one)), describe(Images(other))
    assert describe(Images(one)) == told[0]
    if difference(one, other) is not None and type(one) is type(other):
        assert told[0] != told[1]


# Arrays in files


@pytest.fixture
def mapped(tmp_path):
    file = tmp_path / "data.bin"
    np.arange(1000).tofile(file)
    return lambda: np.memmap(file, np.int64, "r")


def test_a_mapped_array_is_known_by_its_file_and_not_read(mapped):
    assert describe(mapped()) == describe(mapped())
    assert "data.bin" in describe(mapped())


def test_parts_of_a_mapped_array_are_kept_apart(mapped):
    """As training and validation parts of one file are."""
    data = mapped()
    parts = [data, data[:500], data[500:], data[:1000:2], data[1::2], data[::-1], data.reshape(10, 100)]
    parts += [data.reshape(10, 100).T, data.reshape(20, 50)[:10], data.reshape(20, 50)[10:], data[[1, 2]], data[[1, 3]]]
    assert len({describe(part) for part in parts}) == len(parts)
    assert describe(data[500:]) == describe(mapped()[500:])


def test_a_mapped_file_that_was_written_to_is_another(mapped, tmp_path):
    before = describe(mapped())
    np.arange(1, 1001).tofile(tmp_path / "data.bin")
    os.utime(tmp_path / "data.bin", ns=(1, 1))
    assert describe(mapped()) != before
