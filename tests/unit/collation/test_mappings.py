"""Any mapping that can be made again from a dict is a container, whatever its class."""

from __future__ import annotations

from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Mapping, MutableMapping
from types import MappingProxyType

import numpy as np
import pytest

import stoker
from stoker import CollateError
from stoker.collation import collate
from stoker.collation.columns import made
from stoker.collation.tree import container_class, exact_class, flatten, map_leaves, paths, unflatten
from stoker.testing import assert_same
from tests.datasets import Encoding


class Frozen(Mapping):
    """As frozendict and its like."""

    def __init__(self, *args, **kwargs):
        self._items = dict(*args, **kwargs)

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)


class Attributes(dict):
    """The idiom of configurations: ``sample.image`` is ``sample["image"]``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Copying(dict):
    """As EasyDict: items are attributes too, and lists are copied."""

    def __init__(self, given=()):
        super().__init__()
        for name, value in dict(given).items():
            self[name] = list(value) if isinstance(value, list) else value
            setattr(self, name, self[name])


class ArraysOnly(MutableMapping):
    """As TensorDict: takes no strange values, and no other sizes."""

    def __init__(self, given):
        self._held = {}
        for key, value in given.items():
            self[key] = value

    def __setitem__(self, key, value):
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{value!r} is no array")
        self._held[key] = value

    def __getitem__(self, key):
        return self._held[key]

    def __delitem__(self, key):
        del self._held[key]

    def __iter__(self):
        return iter(self._held)

    def __len__(self):
        return len(self._held)


class OneByOne(ArraysOnly):
    """Takes a sample, and no batch."""

    def __setitem__(self, key, value):
        if value.ndim > 1:
            raise ValueError("one sample at a time")
        super().__setitem__(key, value)


class Vocabulary(Mapping):
    """Its constructor takes something else than items, and does not mind a dict."""

    def __init__(self, words):
        self._words = list(words)

    def __getitem__(self, word):
        return self._words.index(word)

    def __iter__(self):
        return iter(self._words)

    def __len__(self):
        return len(self._words)


class Group(Frozen):
    """As a group of an HDF5 file: made of something else altogether."""

    def __init__(self, file, name):
        super().__init__(file[name])


AGAIN = [UserDict, OrderedDict, MappingProxyType, ChainMap, Frozen, Attributes, Copying, ArraysOnly, Encoding]


@pytest.mark.parametrize("cls", AGAIN)
def test_samples_that_are_mappings_become_a_mapping_of_the_same_class(cls):
    got = made(collate([cls({"x": np.full(2, k), "y": np.ones(3)}) for k in range(3)]))
    assert type(got) is cls
    assert list(got) == ["x", "y"]
    assert got["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
    padded = stoker.pad([cls({"x": np.ones(1)}), cls({"x": np.ones(2)})])
    assert type(padded) is cls
    assert padded["x"].tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("cls", AGAIN)
def test_a_tree_of_mappings_is_its_leaves_and_its_shape(cls):
    inner = cls({"z": np.ones(1)})
    tree = {"m": cls({"x": np.arange(3), "y": np.arange(2)}), "list": [inner]}
    leaves, shape = flatten(tree)
    assert [leaf.shape for leaf in leaves] == [(3,), (2,), (1,)]
    assert_same(unflatten(shape, iter(leaves)), tree)
    doubled = map_leaves(lambda leaf: leaf * 2, tree)
    assert type(doubled["m"]) is cls
    assert doubled["m"]["x"].tolist() == [0, 2, 4]
    assert all(eval(path, {"batch": tree}) is leaf for path, leaf in zip(paths(shape), leaves, strict=True))


def test_attributes_beside_the_items_stay_with_a_batch_and_are_not_made_up_of_samples():
    batch = Encoding({"ids": np.arange(3)}, encoding=["text"], n_sequences=2)
    leaves, shape = flatten(batch)
    for again in (unflatten(shape, iter(leaves)), map_leaves(lambda leaf: leaf, batch)):
        assert (again.encodings, again._n_sequences) == (["text"], 2)
        assert again.ids.tolist() == [0, 1, 2]
    assert made(collate([batch, batch])).encodings is None


def test_attributes_that_mirror_the_items_are_those_of_the_batch():
    got = made(collate([Copying({"x": np.ones(2), "names": ["a"]})] * 2))
    assert got.x is got["x"]
    moved = map_leaves(lambda leaf: -leaf if isinstance(leaf, np.ndarray) else leaf, got)
    assert moved.x is moved["x"]
    assert moved.x.tolist() == [[-1, -1], [-1, -1]]
    sample = Attributes(x=np.ones(2))
    assert made(collate([sample, sample])).x.shape == (2, 2)


@pytest.mark.parametrize("sample", [defaultdict(list, x=np.ones(2)), Counter(x=1)], ids=lambda one: type(one).__name__)
def test_a_dict_whose_class_takes_no_dict_becomes_a_plain_one(sample):
    got = made(collate([sample, sample]))
    assert type(got) is dict
    assert len(got["x"]) == 2


@pytest.mark.parametrize(
    "whole",
    [Group({"g": {"x": np.ones(2)}}, "g"), Vocabulary(["b", "a"]), deque([np.ones(2)])],
    ids=lambda one: type(one).__name__,
)
def test_what_cannot_be_made_again_stays_whole(whole):
    assert container_class(whole) is None
    assert collate([whole, whole]).values == [whole, whole]
    assert map_leaves(lambda leaf: leaf, {"a": whole})["a"] is whole


def test_a_class_that_refuses_the_batch_gives_way_to_a_dict():
    got = made(collate([OneByOne({"x": np.ones(2)})] * 2))
    assert type(got) is dict
    assert got["x"].shape == (2, 2)


def test_mappings_of_several_classes_become_a_dict():
    for samples in ([{"x": 1}, UserDict(x=2)], [UserDict(x=1), {"x": 2}], [UserDict(x=1), OrderedDict(x=2)]):
        got = made(collate(samples))
        assert type(got) is dict
        assert got["x"].tolist() == [1, 2]


def test_an_empty_mapping_says_nothing_about_its_class():
    assert flatten(Group({"g": {}}, "g"))[0] != []
    assert flatten(Frozen())[0] == []

    class Unseen(Vocabulary):
        pass

    assert container_class(Unseen([])) is Unseen
    assert container_class(Unseen(["a"])) is None


def test_a_mapping_that_knows_itself_is_no_endless_tree():
    sample = UserDict(x=np.ones(2))
    sample.parent = sample
    assert made(collate([sample, sample]))["x"].shape == (2, 2)
    assert map_leaves(lambda leaf: leaf, sample).parent is sample


def test_mappings_with_other_keys_are_an_error_that_names_them():
    with pytest.raises(CollateError, match=r"keys \['a'\] in sample 3 and \['b'\] in sample 5"):
        collate([UserDict(a=1), UserDict(b=1)], [3, 5])
    with pytest.raises(CollateError, match=r"UserDict in sample 3 and list in sample 5"):
        collate([UserDict(a=1), [1]], [3, 5])


def test_stores_keep_only_plain_ones_apart():
    """What is pickled whole comes back just as it was, whatever a class has hidden."""
    assert exact_class({}) is dict
    assert exact_class(OrderedDict()) is OrderedDict
    assert exact_class(UserDict(a=1)) is exact_class(Attributes(a=1)) is exact_class(defaultdict(list)) is None
