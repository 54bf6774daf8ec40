"""A batch keeps its shape on every bridge: containers, keys, order; strings, numbers, objects and None pass through."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, UserDict, namedtuple
from types import MappingProxyType

import numpy as np
import pytest

from stoker import Loader
from stoker.bridges import bridge
from stoker.collation.tree import Attributes, flatten, map_leaves
from tests.datasets import Encoding, Forest
from tests.streams import assert_same

Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass(frozen=True)
class Record:
    image: object
    name: object


THING = object()
OTHERS = ["a string", b"bytes", 3, 2.5, True, None, THING]
X = np.arange(6, dtype=np.float32).reshape(2, 3)
TREES = {
    "a bare array": X,
    "dict": {"b": X, "a": X, 3: X},
    "ordered dict": OrderedDict(b=X, a=X),
    "a mapping of another class": UserDict(b=X, a=[X]),
    "a mapping with attributes": Encoding({"ids": X}, encoding=["text"]),
    "a mapping that cannot be written to": MappingProxyType({"x": X}),
    "list": [X, X],
    "tuple": (X, X),
    "namedtuple": Pair(X, X),
    "frozen dataclass": Record(X, "name"),
    "empty containers": {"d": {}, "l": [], "t": ()},
    "no array": OTHERS,
    "None": None,
    "nested": {"a": [Pair((X, None), {"deep": [Record([X], OTHERS)]}), []], "b": (X, [[X]], "text")},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_a_tree_of_any_shape_keeps_it(framework, tree):
    made = bridge(framework.name)(tree)
    leaves, shape = flatten(tree)
    made_leaves, made_shape = flatten(made)
    assert made_shape == shape
    for mine, theirs in zip(made_leaves, leaves, strict=True):
        if isinstance(theirs, np.ndarray):
            assert isinstance(mine, framework.array)
            np.testing.assert_array_equal(framework.values(mine), theirs)
        elif isinstance(theirs, Attributes):
            assert mine.values == theirs.values
        else:
            assert mine is theirs


def test_a_tree_that_came_from_workers_has_the_values_of_the_numpy_one(framework):
    """Every kind of container and leaf that a dataset gives, over two epochs."""
    with (
        Loader(Forest(20), 4, shuffle=True, workers=2, to=framework.name) as loader,
        Loader(Forest(20), 4, shuffle=True) as oracle,
    ):
        for _ in range(2):
            for mine, theirs in zip(loader, oracle, strict=True):
                assert_same(
                    map_leaves(lambda leaf: _seen(leaf, framework), mine),
                    map_leaves(lambda leaf: _as_jax_has_it(leaf) if framework.name == "jax" else leaf, theirs),
                )


def test_masks_are_not_lost_without_a_word(framework):
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    assert bridge(framework.name)({"x": masked})["x"] is masked


def _seen(leaf, framework):
    return framework.values(leaf) if isinstance(leaf, framework.array) else leaf


def _as_jax_has_it(leaf):
    """Without x64 it has no 64-bit types."""
    narrower = {"int64": "int32", "float64": "float32"}
    return leaf.astype(narrower.get(leaf.dtype.name, leaf.dtype)) if isinstance(leaf, np.ndarray) else leaf
