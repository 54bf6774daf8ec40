"""A cache belongs to one dataset: anything else in its folder, or of another kind, is a clear error at once."""

from __future__ import annotations

import functools
import os
import pickle
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from stoker import Cache, CacheError, Inline, Loader, Processes, Rotation, Threads
from stoker.stores.cache_folder import FORMAT
from tests.datasets import Forest, Pair, Record, Rows
from tests.stores.caching import Counted, assert_whole, calls, expected, files, once
from tests.streams import assert_same, epochs


def fill(dataset, **how):
    with Loader(dataset, 4, cache=Cache(**how)) as loader:
        return epochs(loader, 1)


# Another dataset


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "other",
    [Counted(13), Counted(12, width=5), functools.partial(Counted, 12), Rows(12), np.arange(12)],
    ids=["longer", "wider", "a factory", "another class", "an array"],
)
def test_another_dataset_is_an_error_in_the_constructor_that_names_both(other, workers, path):
    fill(Counted(12), path=path)
    with pytest.raises(CacheError, match=r"is the cache of another dataset(.|\n)*Counted\(n=12, width=3\)") as caught:
        Loader(other, 4, workers=workers, cache=Cache(path))
    told = str(caught.value)
    assert "Counted(n=12, width=3), version none\nand this one is\n" in told
    kind = "array(int64, (12,)" if isinstance(other, np.ndarray) else getattr(other, "func", type(other)).__name__
    assert kind in told.partition("and this one is")[2]
    assert f"`stoker cache rm {path}`" in told
    assert_whole(path, 12)


@pytest.mark.parametrize(("one", "other"), [("", "2"), ("1", "2"), (1, 2)])
def test_another_version_is_another_dataset(one, other, path):
    fill(Counted(12), path=path, version=one)
    with pytest.raises(CacheError, match=f"version {one or 'none'}(.|\n)*version {other}"):
        Loader(Counted(12), 4, cache=Cache(path, version=other))
    assert fill(Counted(12), path=path, version=one)


class Unkept(Rows):
    """Keeps nothing that would tell how long it is."""

    def __init__(self, n):
        self.__n = n

    def __reduce__(self):
        return Unkept, (12,)

    def __len__(self):
        return self.__n

    def __getitem__(self, index):
        return np.full(4, index)


def test_another_length_of_what_seems_the_same_dataset_is_an_error(path):
    fill(Unkept(12), path=path)
    with Loader(Unkept(13), 4, cache=Cache(path)) as loader:
        with pytest.raises(CacheError, match=r"is a cache of 12 samples and this dataset has 13: pass Cache another"):
            next(iter(loader))
    assert_whole(path, 12)


def test_another_codec_is_an_error(path):
    fill(Counted(12), path=path)
    with pytest.raises(CacheError, match=r"written with codec='safe' and this Cache has codec='pickle': pass Cache"):
        Loader(Counted(12), 4, cache=Cache(path, codec="pickle"))


def test_another_format_is_an_error(path):
    fill(Counted(12), path=path)
    about = path / "about.json"
    about.write_text(about.read_text().replace(f'"stoker_cache": {FORMAT}', '"stoker_cache": 99'))
    with pytest.raises(CacheError, match=f"is a cache of format 99, not {FORMAT}"):
        Loader(Counted(12), 4, cache=Cache(path))


@pytest.mark.parametrize("text", [b"", b"{}", b"[1, 2]", b'{"stoker_cache": 1', b"\xff\xfe", b'{"a": {"b": 1}}'])
def test_an_about_json_that_is_damaged_is_an_error_with_the_remedy(text, path):
    fill(Counted(12), path=path)
    (path / "about.json").write_bytes(text)
    with pytest.raises(CacheError, match=r"about.json is damaged .*stoker cache rm"):
        Loader(Counted(12), 4, cache=Cache(path))


# Another folder


def test_a_path_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "cache"):
        with pytest.raises(CacheError, match=f"{tmp_path / 'file'} is a file: pass Cache a folder"):
            Loader(Counted(12), 4, cache=Cache(path))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_with_other_files_is_an_error_and_left_alone(path):
    path.mkdir()
    (path / "thesis.txt").write_text("mine")
    with pytest.raises(CacheError, match=r"holds other files \(thesis.txt\): pass Cache a folder of its own"):
        Loader(Counted(12), 4, cache=Cache(path))
    assert os.listdir(path) == ["thesis.txt"]


def test_a_folder_that_is_there_and_empty_will_do_and_so_will_one_that_was_hardly_begun(path, log):
    path.mkdir()
    (path / "lock").touch()
    (path / "about.json.new").write_text("{")
    fill(Counted(12, log), path=path)
    fill(Counted(12, log), path=path)
    assert calls(log) == once(12)


def test_folders_are_made_as_needed_and_not_before_the_first_batch(path):
    with Loader(Counted(12), 4, cache=Cache(path / "a" / "b")) as loader:
        assert not path.exists()
        next(iter(loader))
    assert files(path / "a" / "b") == ["all.samples"]


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"refresh_every": 2}, {"max_bytes": 10**6}], ids=repr)
def test_a_cache_that_is_removed_under_way_changes_nothing(options, workers, path):
    """What is open stays open; the next generation is made as without a cache, or anew in a new folder."""
    cache = Cache(path, **options)
    with Loader(Counted(12), 4, workers=workers, cache=cache) as loader:
        got = epochs(loader, 1)
        while path.exists():  # workers that are ahead may be making the next generation there just now
            shutil.rmtree(path, ignore_errors=True)
        got += epochs(loader, 5)
    assert_same(got, expected(Counted(12), cache, 6))


# What a Cache may be given


def test_it_prints_and_compares_as_it_was_written(path, monkeypatch):
    monkeypatch.chdir("/")
    assert Cache("tmp/x") == Cache(Path("/tmp/x"))
    cache = Cache(path, refresh_every=4, max_bytes=5e9)
    assert pickle.loads(pickle.dumps(cache)) == cache
    assert (cache.refresh_every, cache.max_bytes) == (4, 5_000_000_000)


@pytest.mark.parametrize(
    ("how", "told"),
    [({"codec": "json"}, "codec='json'"), ({"version": 1.5}, "version=1.5"), ({"version": None}, "version=None")],
)
def test_what_makes_no_sense_is_refused(how, told, path):
    with pytest.raises((ValueError, TypeError), match=re.escape(told)):
        Cache(path, **how)


def test_only_a_cache_will_do_and_no_rotation_beside_it(path):
    with pytest.raises(TypeError, match=r"stoker\.Cache"):
        Loader(Rows(3), cache=str(path))
    with pytest.raises(ValueError, match="do not go together"):
        Loader(Rows(3), cache=Cache(path), rotation=Rotation(2))


# Samples that only pickle can keep


@dataclass
class Labelled:
    image: np.ndarray
    names: set


class Objects(Rows):
    """Dataclasses, namedtuples and sets, one in the other."""

    def __getitem__(self, index):
        image = self.data[index] + np.random.randint(100)
        return Labelled(image, {f"name {index}", "all"}), Pair(index, {index})


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
@pytest.mark.parametrize("dataset", [Objects(12), Forest(12)], ids=["objects", "forest"])
def test_with_codec_pickle_any_sample_is_kept(dataset, workers, path):
    cache = Cache(path, codec="pickle")
    with Loader(dataset, 4, workers=workers, cache=cache) as loader:
        assert_same(epochs(loader, 3), expected(dataset, cache, 3))
    assert_whole(path, 12)


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
@pytest.mark.parametrize(
    ("dataset", "told"),
    [(Objects(12), r"sample\[0\].names is a set"), (Forest(12), r"sample\['pair'\] is a Pair")],
    ids=["objects", "forest"],
)
def test_without_it_they_are_refused_with_the_remedy(dataset, told, workers, path):
    with Loader(dataset, 4, workers=workers, cache=Cache(path)) as loader:
        with pytest.raises(TypeError, match=f'{told}: a store keeps .*pass codec="pickle"'):
            next(iter(loader))


def test_a_record_is_a_record(path):
    class Records(Rows):
        def __getitem__(self, index):
            return Record(super().__getitem__(index), index)

    with Loader(Records(4), None, cache=Cache(path, codec="pickle")) as loader:
        assert [[type(sample), sample.label] for _ in range(2) for sample in loader] == [
            [Record, k] for _ in range(2) for k in range(4)
        ]
