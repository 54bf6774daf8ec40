"""``stoker.map_leaves``: a function of each leaf, in a tree of the same form."""

from __future__ import annotations

from collections import OrderedDict, UserDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from tests.datasets import Encoding, Pair, Record

TREES = st.recursive(
    st.integers() | st.text(max_size=2) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.builds(Record, inner, inner)
    ),
    max_leaves=8,
)


def naive(function, tree):
    if isinstance(tree, dict):
        return {key: naive(function, value) for key, value in tree.items()}
    if isinstance(tree, Pair):
        return Pair(naive(function, tree.left), naive(function, tree.right))
    if isinstance(tree, Record):
        return Record(naive(function, tree.image), naive(function, tree.label))
    if isinstance(tree, list | tuple):
        return type(tree)(naive(function, value) for value in tree)
    return function(tree)


@given(TREES)
def test_each_leaf_is_replaced_and_the_form_stays(tree):
    assert stoker.map_leaves(repr, tree) == naive(repr, tree)
    seen, expected = [], []
    stoker.map_leaves(seen.append, tree)
    naive(expected.append, tree)
    assert seen == expected, "in order, each once"


@pytest.mark.parametrize("cls", [OrderedDict, UserDict])
def test_mappings_keep_their_class(cls):
    got = stoker.map_leaves(len, cls(a="xy", b=[""]))
    assert type(got) is cls
    assert dict(got) == {"a": 2, "b": [0]}


def test_what_a_mapping_has_beside_its_items_stays_and_is_no_leaf():
    seen = []
    got = stoker.map_leaves(seen.append, Encoding({"ids": 5}, encoding=["text"]))
    assert seen == [5]
    assert got.encodings == ["text"]


def test_the_batch_itself_does_not_change():
    batch = {"x": [np.zeros(2)]}
    got = stoker.map_leaves(lambda leaf: leaf + 1, batch)
    assert batch["x"][0].tolist() == [0, 0]
    assert got["x"][0].tolist() == [1, 1]


def test_the_arguments_the_other_way_round_are_an_error():
    with pytest.raises(TypeError, match="pass a function that gets a leaf; the batch is the second argument"):
        stoker.map_leaves({"x": 1}, len)
