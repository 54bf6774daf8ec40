"""Rows of Hugging Face's ``Dataset``, whose columns are not taken apart, are what they would be as samples."""

from __future__ import annotations

import numpy as np
import pytest

import stoker
from stoker.collation import collate, pad
from stoker.collation.columns import Columnar, made
from stoker.errors import CollateError
from stoker.sources.indexed import Indexed

datasets = pytest.importorskip("datasets")

INDICES = [7, 0, 3, 3, 9, 1]
COLUMNS = {
    "text": [f"text {k}" for k in range(10)],
    "label": list(range(10)),
    "score": [k / 2 for k in range(10)],
    "flag": [k % 2 == 0 for k in range(10)],
    "rows": np.arange(30, dtype=np.float32).reshape(10, 3),
    "nested": [{"a": k, "b": [k, k + 1]} for k in range(10)],
    "nothing": [None] * 10,
}
FORMATS = ["", "torch", "numpy"]


@pytest.fixture(params=FORMATS, ids=lambda name: name or "plain")
def formatted(request):
    def make(columns):
        if request.param == "torch":
            pytest.importorskip("torch")
        found = datasets.Dataset.from_dict(columns)
        return found.with_format(request.param) if request.param else found

    return make


def assert_same(got, wanted):
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        got, wanted = list(got.values()), list(wanted.values())
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for mine, theirs in zip(got, wanted, strict=True):
            assert_same(mine, theirs)
    elif hasattr(wanted, "dtype"):
        assert (got.dtype, got.shape, got.tolist()) == (wanted.dtype, wanted.shape, wanted.tolist())
    else:
        assert got == wanted


@pytest.mark.parametrize("column", COLUMNS)
def test_a_batch_is_that_of_its_samples(formatted, column):
    dataset = formatted({column: COLUMNS[column]})
    fetched = Indexed(dataset).fetch(INDICES)
    assert type(fetched.samples) is Columnar
    assert_same(made(collate(fetched.samples)), made(collate(dataset.__getitems__(INDICES))))
    assert_same(list(fetched.samples), dataset.__getitems__(INDICES))


def test_a_collate_function_gets_a_list_of_samples(formatted):
    seen = []
    dataset = formatted({"label": COLUMNS["label"], "text": COLUMNS["text"]})
    with stoker.Loader(dataset, 5, collate=lambda samples: seen.append(samples) or 0) as loader:
        list(loader)
    assert [type(samples) for samples in seen] == [list, list]
    assert [int(sample["label"]) for samples in seen for sample in samples] == list(range(10))


def test_ragged_rows_are_an_error_that_names_the_samples(formatted):
    samples = Indexed(formatted({"tokens": [[1], [2, 3], [4, 5, 6]]})).fetch([1, 0, 2]).samples
    with pytest.raises(CollateError, match=r"sample\['tokens'\] .*2.* in sample 1 and .*1.* in sample 0"):
        made(collate(samples, [1, 0, 2]))


def test_ragged_rows_of_arrays_are_filled_up(formatted):
    dataset = formatted({"tokens": [[1], [2, 3], [4, 5, 6]]})
    samples = Indexed(dataset).fetch([1, 0, 2]).samples
    if isinstance(samples[0]["tokens"], list):
        pytest.skip("lists are containers, of which there is nothing to fill up")
    assert made(pad(list(samples)))["tokens"].tolist() == [[2, 3, 0], [1, 0, 0], [4, 5, 6]]


def test_a_transform_that_gives_other_samples_than_asked_for_is_an_error():
    dataset = datasets.Dataset.from_dict({"x": list(range(10))})
    dataset.set_transform(lambda batch: {"x": batch["x"][1:]})
    with pytest.raises(ValueError, match="gave 5 samples for 6 indices"):
        Indexed(dataset).fetch(INDICES)


def test_a_transform_gives_what_it_makes():
    dataset = datasets.Dataset.from_dict({"x": list(range(10))})
    dataset.set_transform(lambda batch: {"twice": np.array(batch["x"]) * 2})
    with stoker.Loader(dataset, 4) as loader:
        assert [batch["twice"].tolist() for batch in loader] == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]


def test_a_format_that_is_no_dict_goes_the_way_of_all_datasets():
    dataset = datasets.Dataset.from_dict({"x": list(range(10))}).with_format("pandas")
    fetched = Indexed(dataset).fetch(INDICES)
    assert [sample["x"] for sample in fetched.samples] == INDICES
    assert type(fetched.samples) is list
