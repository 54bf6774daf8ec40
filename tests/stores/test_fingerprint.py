"""A dataset is known by its class and arguments: in any process by the same text, and another one by another."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from stoker import CacheError
from stoker.stores.fingerprint import describe, described
from stoker.testing.comparison import difference
from tests.datasets import Augmented, Rows
from tests.stores.arguments import (
    KINDS,
    Described,
    Hidden,
    Images,
    Mode,
    Others,
    Slotted,
    Unkept,
    enclosing,
    local,
    resize,
    wrapped,
)
from tests.stores.trees import SAMPLES


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


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_within_an_argument_tells_datasets_apart(kind):
    make = KINDS[kind]
    assert described(Images(make(0))) == described(Images(make(0)))
    assert described(Images(make(0))) != described(Images(make(1)))
    if kind not in ("object of a class of a function", "InitVar", "typing"):  # datasets that keep the rest by name
        assert described(make(0)) != described(make(1))


def test_what_refers_to_itself_or_is_in_many_places_ends():
    loop = Images([])
    loop.root.append(loop)
    assert "levels above" in describe(loop)
    tree = [1]
    for _ in range(60):
        tree = [tree, tree]
    assert describe(tree) != describe([tree])


def test_what_is_nested_too_deeply_is_an_error_with_the_remedy():
    with pytest.raises(CacheError, match=r"nested too deeply to tell it from others. Pass a class or functools"):
        describe(nested_without_calls(100_000))


def nested_without_calls(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_files_and_generators_do_not_matter_where_an_argument_is_kept_under_another_name(tmp_path):
    """They are opened, and move on, while the dataset is used."""
    dataset = Unkept("a")
    before = describe(dataset)
    dataset.generator.random()
    with open(tmp_path / "file", "wb") as dataset.file:
        assert describe(dataset) == before
    dataset.kept = "b"
    assert describe(dataset) != before


def test_a_dataset_may_keep_what_makes_no_difference_under_another_name():
    """But not an object in its arguments: nobody has told its author."""

    class Logging:
        def __init__(self, root, log):
            self.root, self.written_to = root, log

    assert describe(Logging("a", 1)) == describe(Logging("a", 2)) != describe(Logging("b", 1))
    assert describe(Images(Logging("a", 1))) != describe(Images(Logging("a", 2)))


def test_a_class_or_function_that_was_defined_again_is_the_same():
    """As in a notebook, or where they came by cloudpickle: their names lead elsewhere, or nowhere."""
    code = "class Cell:\n    def __init__(self, root, f):\n        self.root, self.f = root, f\n"
    code += "def cell(x):\n    return x\n"
    texts = []
    for _ in range(2):
        names = {"__name__": __name__}
        exec(code, names)
        texts.append(describe(names["Cell"]("a", [names["cell"], functools.lru_cache(names["cell"])])))
    assert texts[0] == texts[1] == f"{__name__}:Cell(root='a', f=list({__name__}:cell, {__name__}:cell))"


def test_a_property_that_fails_is_passed_over():
    class Failing:
        def __init__(self, root):
            self.kept = root

        @property
        def root(self):
            raise RuntimeError("not now")

    assert describe(Failing(1)) != describe(Failing(2))


def test_names_that_python_gives_a_class_do_not_matter():
    """``__firstlineno__`` and ``__static_attributes__`` came with Python 3.13."""
    one = local(3)
    before = describe(one)
    one.__firstlineno__, one.__static_attributes__, one.__doc__ = 99, ("x",), "words"
    assert describe(one) == before


def test_arrow_tables_are_known_by_their_contents():
    pa = pytest.importorskip("pyarrow")
    makers = [
        lambda k: pa.table({"a": [1, 2, None, k], "s": ["x", None, "y", str(k)]}),
        lambda k: pa.table({"a": list(range(10))}).slice(k, 5),
        lambda k: pa.chunked_array([[1], [k]]),
        lambda k: pa.table({"l": [[1, k], [2]], "d": [{"x": k}, {"x": 1}]}),
        lambda k: pa.py_buffer(bytes([k])),
    ]
    for make in makers:
        assert describe(make(0)) == describe(make(0)) != describe(make(1))


def test_tensors_are_known_by_their_contents_and_type():
    torch = pytest.importorskip("torch")
    makers = [
        lambda k: torch.arange(3) + k,
        lambda k: (torch.arange(3) + k).bfloat16(),
        lambda k: [torch.float16, torch.bfloat16][k],
        lambda k: [torch.zeros(2, dtype=torch.int16), torch.zeros(2, dtype=torch.bfloat16)][k],
        lambda k: torch.eye(3).mul(k + 1).to_sparse(),
        lambda k: torch.arange(12).reshape(3, 4).T[k:][:2],
        lambda k: torch.utils.data.Subset([1, 2, 3], [k]),
        lambda k: [torch.zeros(2), np.zeros(2, "f4")][k],
    ]
    for make in makers:
        assert describe(Images(make(0))) == describe(Images(make(0))) != describe(Images(make(1)))


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
        *[Images(make(0)) for make in KINDS.values()],
        Images(local(3)(), transform=wrapped(resize, {"one", "two", "three"})),
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
    program = "from tests.stores.test_fingerprint import described, make_all\n"
    program += "for one in make_all(): print(repr(described(one)))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.splitlines() == [repr(described(one)) for one in make_all()]


def test_what_is_no_argument_of_the_constructor_does_not_matter():
    dataset = Images("a")
    before = describe(dataset)
    dataset[3]
    dataset.opened = object()
    assert describe(dataset) == before


def test_the_text_names_class_and_arguments():
    assert describe(Images("data/train", size=9)) == (
        "tests.stores.arguments:Images(root='data/train', transform=None, size=9)"
    )
    assert describe(functools.partial(Images, "a", size=9)) == "tests.stores.arguments:Images('a', size=9)"


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
