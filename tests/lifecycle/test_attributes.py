"""The attributes of a loader: what it was made with can be read, and setting what would have no effect is an error."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from stoker import Loader, Threads

DATA = [1, 2, 3]


def test_each_argument_can_be_read_as_it_was_passed():
    passed = {"batch_size": 2, "shuffle": True, "seed": 7, "workers": Threads(2), "shard": (0, 1), "collate": list}
    loader = Loader(DATA, **passed)
    assert loader.dataset is DATA
    assert {name: getattr(loader, name) for name in passed} == passed
    defaults = {name: each.default for name, each in inspect.signature(Loader).parameters.items() if name != "dataset"}
    fresh = Loader(DATA)
    assert {name: getattr(fresh, name) for name in defaults} == defaults


@pytest.mark.parametrize("name", inspect.signature(Loader).parameters)
def test_an_argument_cannot_be_set_afterwards(name):
    loader = Loader(DATA)
    before = getattr(loader, name)
    with pytest.raises(
        AttributeError, match=rf"loader.{name} = 5 would have no effect: make a new loader with {name}=5"
    ):
        setattr(loader, name, 5)
    assert getattr(loader, name) is before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("epoch", r"call loader.set_epoch\(3\)"),
        ("epcoh", "is epoch meant"),
        ("batchsize", "is batch_size meant"),
        ("num_workers", "pass workers=3"),
        ("collate_fn", "pass collate=3"),
    ],
)
def test_a_name_that_has_no_effect_is_answered(name, words):
    with pytest.raises(AttributeError, match=words):
        setattr(Loader(DATA), name, 3)


def test_attributes_of_your_own_are_yours():
    loader = Loader(DATA)
    loader.name = "train"
    loader._note = 1
    assert (loader.name, loader._note) == ("train", 1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))])
def test_a_copy_has_them_too_and_keeps_them(copied):
    other = copied(Loader(DATA, 2, seed=3))
    assert (other.dataset, other.batch_size, other.seed) == (DATA, 2, 3)
    with pytest.raises(AttributeError, match="make a new loader"):
        other.seed = 4
    assert [batch.tolist() for batch in other] == [[1, 2], [3]]


class Named(Loader):
    """A subclass as users write it, with attributes before and after."""

    epcoh = None

    def __init__(self, dataset):
        self.dataset = "mine"
        super().__init__(dataset, 2)
        self.epcoh = 3


def test_a_subclass_may_have_what_attributes_it_likes_but_arguments():
    loader = Named(DATA)
    assert (loader.dataset, loader.epcoh) == (DATA, 3)
    with pytest.raises(AttributeError, match="make a new loader"):
        loader.batch_size = 4
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]
