"""PyLoader's arguments, and what its parts give: what is wrong is an error that says what to write."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from stoker.compat.pyloader import DataCollator, DataLoader, DataReader, Dataset
from tests.compat.chunked import Doubled, Given, Numbers, make, read, write_chunks


@pytest.fixture
def folder(tmp_path):
    return write_chunks(tmp_path / "data", [4, 4])


def test_the_defaults_are_those_of_its_document():
    def defaults(function):
        return {p.name: p.default for p in inspect.signature(function).parameters.values() if p.default is not p.empty}

    assert defaults(DataReader) == {"batch_size": 4, "shuffle": False, "random_seed": 42}
    assert list(inspect.signature(DataLoader).parameters)[:4] == ["datareader", "dataset", "datacollator", "data_dir"]
    assert defaults(DataLoader) == {"num_epoch": 1, "max_queue_size": 10, "shuffle": False, "random_seed": 42}


@pytest.mark.parametrize("name", ["batch_size", "num_epoch", "max_queue_size"])
def test_counts_are_whole_numbers(folder, name):
    def use(value):
        if name == "batch_size":
            return make(folder, Numbers(value))
        return make(folder, **{name: value})

    for wrong, kind in ((0, ValueError), (-1, ValueError), (2.5, TypeError), ("4", TypeError), (True, TypeError)):
        with pytest.raises(kind, match=re.escape(f"{name}={wrong!r}: pass a whole number of 1 or more")):
            use(wrong)
    with use(np.int64(1)) as loader:
        assert read(loader)


def test_flags_are_true_or_false(folder):
    with pytest.raises(TypeError, match="shuffle=1: pass True or False"):
        make(folder, shuffle=1)
    with pytest.raises(TypeError, match="shuffle=None: pass True or False"):
        Numbers(shuffle=None)


@pytest.mark.parametrize("wrong", [None, 1.5, "a", True])
def test_seeds_are_whole_numbers(folder, wrong):
    with pytest.raises(TypeError, match=f"random_seed={wrong!r}: pass a whole number"):
        make(folder, random_seed=wrong)
    with pytest.raises(TypeError, match=f"random_seed={wrong!r}: pass a whole number"):
        Numbers(random_seed=wrong)


class Silent(DataReader):
    def __init__(self):
        pass

    def read_file(self, path):
        return {}, 0


class AsInTheDocument(DataCollator):
    def collate_batch(self):
        return {}


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ({"reader": Doubled()}, TypeError, r"datareader=<.*Doubled .*>: pass an object .* inherits from DataReader"),
        ({"dataset": Numbers()}, TypeError, r"dataset=<.*: pass an object of a class that inherits from Dataset"),
        ({"collator": print}, TypeError, r"datacollator=<.*: pass an object .* inherits from DataCollator"),
        ({"reader": Numbers}, TypeError, r"datareader=<class .*Numbers'>: make an object of it"),
        ({"reader": DataReader()}, NotImplementedError, r"no read_file: define read_file\(self, path\)"),
        ({"dataset": Dataset()}, NotImplementedError, r"no batch_encode: define batch_encode\(self, batch_data\)"),
        ({"collator": DataCollator()}, NotImplementedError, r"no collate_batch: define collate_batch\(self, batch"),
        ({"collator": AsInTheDocument()}, TypeError, r"collate_batch cannot be .*: define collate_batch\(self, bat"),
        ({"reader": Silent()}, TypeError, r"Silent has no batch_size: call super\(\).__init__ in its __init__"),
    ],
)
def test_parts_are_checked_by_the_constructor(folder, parts, kind, words):
    with pytest.raises(kind, match=words):
        make(folder, **parts)


def test_the_methods_to_override_say_so():
    for use in (
        lambda: DataReader().read_file("x"),
        lambda: Dataset().batch_encode({}),
        lambda: DataCollator().collate_batch({}),
    ):
        with pytest.raises(NotImplementedError, match="has no"):
            use()


def test_the_folder_must_be_there_and_hold_files(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        make(tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError, match="is a file: pass the folder that it is in"):
        make(folder / "chunk000")
    with pytest.raises(TypeError, match="data_dir=None: pass the path"):
        make(None)
    (tmp_path / "empty" / "below").mkdir(parents=True)
    (tmp_path / "empty" / ".hidden").touch()
    with pytest.raises(FileNotFoundError, match="empty holds no files"):
        make(tmp_path / "empty")


@pytest.mark.parametrize("queue", [1, 2])
@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"x": [1]}, TypeError, "read_file gave dict for {path}: let it return (a dict of lists, n_sample)"),
        (None, TypeError, "read_file gave NoneType for {path}"),
        (({"x": [1]}, 1, 1), TypeError, "read_file gave tuple of 3 for {path}"),
        (([1], 1), TypeError, "read_file gave (list, int) for {path}"),
        (({"x": [1]}, 1.0), TypeError, "read_file gave (dict, float) for {path}"),
        (({"x": [1]}, True), TypeError, "read_file gave (dict, bool) for {path}"),
        (({"x": "word"}, 4), TypeError, "read_file gave str as 'x' of {path}: let it give a list"),
        (({"x": 4}, 4), TypeError, "read_file gave int as 'x' of {path}"),
        (({"x": [1, 2], "y": [1, 2, 3]}, 2), ValueError, "n_sample=2 for {path}, but 3 values of 'y'"),
        (({"x": [1, 2]}, 0), ValueError, "n_sample=0 for {path}, but 2 values of 'x'"),
        (({}, 3), ValueError, "n_sample=3 and 0 keys for {path}"),
        (({}, -1), ValueError, "n_sample=-1 and 0 keys for {path}"),
    ],
)
def test_what_a_reader_gives_is_checked(folder, given, kind, words, queue):
    with make(folder, Given(given), max_queue_size=queue) as loader:
        with pytest.raises(kind, match=re.escape(words.format(path=folder / "chunk000"))):
            next(iter(loader))


class Nothing(Dataset, DataCollator):
    def batch_encode(self, batch_data):
        pass

    def collate_batch(self, batch_data):
        pass


@pytest.mark.parametrize(("part", "method"), [("dataset", "batch_encode"), ("collator", "collate_batch")])
def test_what_the_other_parts_give_is_checked(folder, part, method):
    with make(folder, **{part: Nothing()}) as loader:
        with pytest.raises(TypeError, match=f"Nothing.{method} gave NoneType: let it return a dict") as caught:
            next(iter(loader))
        assert "chunk000" in "\n".join(caught.value.__notes__)


def test_there_is_no_length(folder):
    with make(folder) as loader, pytest.raises(TypeError, match="no len"):
        len(loader)
