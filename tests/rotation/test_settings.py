"""Rotation's own words: what is refused, and how."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

import stoker
from stoker import Cache, Loader, Rotation


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"times": 1}, r"times=1.*2 or more, or leave the rotation out"),
        ({"times": 0}, r"times=0.*2 or more"),
        ({"times": -3}, r"times=-3.*2 or more"),
        ({"times": 2.0}, r"times=2.0.*2 or more"),
        ({"times": True}, r"times=True.*2 or more"),
        ({"times": "3"}, r"times='3'.*2 or more"),
        ({"times": None}, r"times=None.*2 or more"),
        ({"times": 2, "size": 0}, r"size=0.*how many samples rotate at the same time, 1 or more, or None for all"),
        ({"times": 2, "size": -1}, r"size=-1"),
        ({"times": 2, "size": 2.5}, r"size=2.5"),
        ({"times": 2, "size": False}, r"size=False"),
        ({"times": 2, "medium": "tape"}, r"medium='tape'.*pass one of 'memory', 'disk'"),
        ({"times": 2, "medium": None}, r"medium=None.*pass one of"),
        ({"times": 2, "medium": ["disk"]}, r"medium=\['disk'\].*pass one of"),
        ({"times": 2, "medium": "disk"}, r"medium='disk', path=None.*a path with \"disk\" only"),
        ({"times": 2, "path": "."}, r"medium='memory', path='.'.*a path with \"disk\" only"),
        ({"times": 2, "medium": "disk", "path": "no/such/folder"}, r"no/such/folder.*there is no such folder; make it"),
        ({"times": 2, "medium": "disk", "path": __file__}, r"there is no such folder"),
    ],
)
def test_wrong_settings_are_clear_errors_at_once(arguments, words):
    with pytest.raises(ValueError, match=words):
        Rotation(**arguments)


def test_numbers_may_be_numpys_and_paths_of_any_kind(tmp_path):
    for path in (tmp_path, str(tmp_path), os.fsencode(tmp_path)):
        kept = Rotation(np.int64(2), "disk", size=np.int8(3), path=path)
        with Loader(np.arange(6), 3, rotation=kept) as loader:
            assert [batch.tolist() for batch in loader] == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]


def test_a_relative_path_is_that_of_the_moment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    kept = Rotation(2, "disk", path="here")
    monkeypatch.chdir("/")
    with Loader(np.arange(4), 2, workers=2, rotation=kept) as loader:
        assert len(list(loader)) == 4


@pytest.mark.parametrize("wrong", [3, "memory", {"times": 2}, Rotation], ids=repr)
def test_something_else_in_its_place_is_an_error(wrong):
    with pytest.raises(TypeError, match=r"pass stoker.Rotation\(times, ...\)"):
        Loader(np.arange(4), 2, rotation=wrong)


def test_cache_and_rotation_together_are_refused_with_a_word_on_which_to_take(tmp_path):
    with pytest.raises(ValueError, match=r"do not go together.*the whole dataset, use the cache.*use the rotation"):
        Loader(np.arange(4), 2, cache=Cache(tmp_path), rotation=Rotation(2))


def test_a_folder_that_is_gone_by_the_first_use_is_an_error_that_names_it(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    with Loader(np.arange(4), 2, workers=2, rotation=Rotation(2, "disk", path=folder)) as loader:
        folder.rmdir()
        with pytest.raises(FileNotFoundError, match="gone"):
            next(iter(loader))
        folder.mkdir()
        assert len(list(loader)) == 4


def test_it_is_a_value(tmp_path):
    kept = Rotation(3, "disk", size=5, path=tmp_path)
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert kept == Rotation(3, "disk", 5, str(tmp_path))
    assert hash(Rotation(3)) == hash(Rotation(3)) != hash(Rotation(4))


def test_a_loader_with_rotation_travels_before_its_first_use():
    with pickle.loads(pickle.dumps(Loader(np.arange(4), 2, rotation=Rotation(2)))) as loader:
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [0, 1], [2, 3]]


def test_the_length_is_that_of_all_uses():
    with Loader(np.arange(10), 4, rotation=Rotation(3)) as loader:
        assert len(loader) == 8
        assert loader.stats().batches == 0
        assert sum(len(batch) for batch in loader) == 30
        assert loader.stats().samples == 30


def test_max_errors_is_a_share_of_the_uses():
    """Sample 13 is used four times, and left out as often."""
    from tests.datasets import Failing

    options = {"rotation": Rotation(4), "on_error": "skip"}
    with Loader(Failing(20), 5, max_errors=0.05, **options) as loader:
        assert sum(len(batch) for batch in loader) == 76
    with (
        Loader(Failing(20), 5, max_errors=3, **options) as loader,
        pytest.raises(stoker.TooManyErrors, match="4 of 80"),
    ):
        list(loader)
