"""Samples as columns: joined, taken, and gathered out of samples, which lead back to those."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import Chunks, Inline, Loader
from stoker.collation import collate
from stoker.collation.columns import made
from stoker.errors import ChunkError
from stoker.sources.files.columns import Columns, gathered, joined
from stoker.testing import assert_same
from tests.files.forms import plain
from tests.streams import kept


def test_columns_are_taken_and_joined():
    first = Columns({"x": np.arange(3), "y": ["a", "b", "c"]})
    second = Columns({"y": ["d"], "x": np.array([9.5])})
    both = Columns.joined([first, Columns({"x": [], "y": []}), second])
    assert plain(both.take([3, 0])) == [{"x": 9.5, "y": "d"}, {"x": 0.0, "y": "a"}]
    assert len(both) == 4


def test_columns_that_fit_in_no_array_are_joined_as_lists():
    wide, narrow = Columns({None: np.ones((1, 2), int)}), Columns({None: np.ones((1, 1), int)})
    assert [row.tolist() for row in Columns.joined([wide, narrow]).rows()] == [[1, 1], [1]]
    assert Columns.joined([Columns({"x": np.array([True])}), Columns({"x": np.array([2])})]).columns["x"] == [True, 2]


def test_columns_with_other_keys_are_not_joined():
    with pytest.raises(ChunkError, match="'x', 'y' in one file, a bare array in another"):
        Columns.joined([Columns({"x": [1], "y": [2]}), Columns({None: np.ones(1)})])


# Gathered

plain_values = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.booleans(), st.text(max_size=3))
uniform = st.lists(st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.text(max_size=3)}), max_size=4)
any_samples = st.lists(
    st.one_of(st.dictionaries(st.sampled_from("ab"), plain_values | st.none(), max_size=2), plain_values), max_size=4
)
pieces_of_samples = st.lists(uniform | any_samples, max_size=5)


@given(pieces_of_samples)
def test_what_was_gathered_leads_back_to_the_very_samples(pieces):
    samples = [sample for piece in pieces for sample in piece]
    found = gathered(pieces)
    back = found.rows() if isinstance(found, Columns) else found
    assert repr([as_sorted(sample) for sample in back]) == repr([as_sorted(sample) for sample in samples])


def as_sorted(sample):
    return dict(sorted(sample.items())) if isinstance(sample, dict) else sample


def test_samples_become_columns_where_all_are_alike_and_else_none():
    a, b = [{"x": 1, "y": "a"}], [{"y": "b", "x": 2}, {"x": 3, "y": "c"}]
    found = gathered([a, [], b])
    assert found.columns["x"].dtype == np.int64
    assert found.columns["x"].tolist() == [1, 2, 3]
    assert found.columns["y"] == ["a", "b", "c"]
    for other in (
        [{"x": 1.5, "y": "a"}],
        [{"x": 1}],
        [{"x": 1, "y": "a", "z": 0}],
        [{"x": 2**70, "y": "a"}],
        [{}],
        [1],
    ):
        assert gathered([a, other, b]) == [*a, *other, *b]


def test_gathered_and_given_columns_are_joined_sample_by_sample():
    made, given_ones = gathered([[{"x": 1}]]), Columns({"x": np.array([2])})
    assert plain(joined([made, given_ones])) == [{"x": 1}, {"x": 2}]


@given(st.lists(uniform | any_samples.map(lambda samples: [s for s in samples if isinstance(s, dict)]), max_size=3))
def test_batches_are_those_that_collate_makes(tmp_path_factory, files):
    """Of files of JSON lines, in order: dtypes, containers and values."""
    folder = tmp_path_factory.mktemp("files")
    for number, samples in enumerate(files):
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    samples = [sample for piece in files for sample in piece]
    batches = [samples[start : start + 2] for start in range(0, len(samples), 2)]
    try:
        due = [as_sorted(made(collate(batch, range(len(batch))))) for batch in batches]
    except (TypeError, ValueError, KeyError):
        return  # samples that fit in no batch
    if samples:
        with Loader(Chunks(folder), 2, workers=Inline()) as loader:
            assert_same([as_sorted(kept(batch)) for batch in loader], due)
