"""Columns of strings against lists of the same strings."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.collation import Objects
from stoker.collation.columns import made, materialize
from stoker.sources.files.columns import Columns
from stoker.sources.files.texts import PackedTexts, Texts
from stoker.sources.group_table import as_texts, batches_of, opened, packed, table_of

ODD = ["", "a", "a\0b", "\0", "\n", "ä", "漢字", "\U0001f600", "\x7f\x80", "\uffff", "e\u0301", "\ufeff"]
strings = st.lists(st.text() | st.sampled_from(ODD), max_size=12)
filled = st.lists(st.text() | st.sampled_from(ODD), min_size=1, max_size=12)


def texts(values: list[str | None]) -> Texts:
    """With nulls where a value is None."""
    found = Texts.of([value or "" for value in values])
    assert found is not None
    nulls = np.array([value is None for value in values], bool)
    return Texts(found.data, found.offsets, nulls if nulls.any() else None)


@given(strings)
def test_strings_come_back_as_they_were(values):
    assert texts(values).rows() == values
    assert list(map(type, texts(values).rows())) == [str] * len(values)


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\udc80" * 3])
def test_half_a_pair_of_surrogates_is_no_column_of_texts(half):
    values = ["a", half]
    assert Texts.of(values) is None
    assert PackedTexts.of(values, [0, 2]) is None
    assert as_texts(values).values == packed(values, []).values == values


@given(filled, st.data())
def test_any_part_and_any_rows_are_those_of_the_list(values, data):
    values = [None if data.draw(st.booleans()) else value for value in values]
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    column = texts(values)
    assert column.rows(start, stop) == values[start:stop]
    assert column.part(start, stop).rows() == values[start:stop]
    assert column.take(np.array(rows, np.intp)).rows() == [values[row] for row in rows]


@given(st.lists(st.lists(st.none() | st.text() | st.sampled_from(ODD), min_size=1), min_size=1, max_size=4), st.data())
def test_joined_they_are_one_behind_the_other(parts, data):
    column, values = Texts.joined(list(map(texts, parts))), [value for part in parts for value in part]
    assert len(column) == len(values)
    assert column.rows() == values
    start = data.draw(st.integers(0, len(values)))
    assert column.part(start, len(values)).rows() == values[start:]
    again = Texts.joined([column, column])
    assert again.rows() == values * 2
    assert materialize(again.data).tobytes() == "".join(value or "" for value in values * 2).encode()


@given(filled, st.data())
def test_packed_for_batches_any_rows_are_those_of_the_list(values, data):
    places = st.integers(0, len(values))
    parts = [packed(values, data.draw(st.lists(places))) for _ in range(data.draw(st.integers(1, 3)))]
    column = data.draw(st.sampled_from([lambda one: one, made]))(
        parts[0] if len(parts) == 1 else PackedTexts.joined(parts)
    )
    values = values * len(parts)
    assert isinstance(column, PackedTexts)
    places = st.integers(0, len(values))
    start = data.draw(places)
    stop = data.draw(st.integers(start, len(values)))
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    assert len(column) == len(values)
    assert column.rows() == values
    assert column.rows(start, stop) == values[start:stop]
    assert column.take(np.array(rows, np.intp)) == [values[row] for row in rows]


@pytest.mark.parametrize("values", [[], [b"a"], ["a", None], [1], ["a", b"b"]], ids=repr)
def test_what_is_no_list_of_strings_stays_a_list(values):
    assert as_texts(values).values is values
    assert packed(values, [1]).values is values


@given(filled, st.data())
def test_a_table_is_cut_into_the_batches_of_the_lists(values, data):
    """In order and in another, as one table and batch by batch."""
    column = data.draw(st.sampled_from([texts(values), PackedTexts.of(values), values]))
    samples = Columns({"text": column, "number": np.arange(len(values))})
    order = data.draw(st.permutations(range(len(values))))
    size = data.draw(st.integers(1, len(values)))
    bounds = [*range(0, len(values), size), len(values)]
    for places, expected in ((slice(0, len(values)), range(len(values))), (np.array(order), order)):
        hold = data.draw(
            st.sampled_from([Objects, as_texts, partial(packed, bounds=bounds), partial(packed, bounds=())])
        )
        batches = list(batches_of(made(table_of(samples, places, hold)), bounds))
        assert [batch["text"] for batch in batches] == [
            [values[place] for place in expected[start : start + size]] for start in range(0, len(values), size)
        ]
        assert [n for batch in batches for n in batch["number"].tolist()] == list(expected)
        assert opened(made(table_of(samples, places, hold)))["text"] == [values[place] for place in expected]


def test_strings_are_made_when_their_batch_is_asked_for_and_each_piece_once(monkeypatch):
    unpacked, strings = [], PackedTexts.strings

    def counted(texts, piece):
        unpacked.append(piece)
        return strings(texts, piece)

    monkeypatch.setattr(PackedTexts, "strings", counted)
    values = [str(n) for n in range(12)]
    batches = batches_of(made({"text": packed(values, [5, 10])}), [0, 2, 4, 6, 8, 10, 12])
    assert unpacked == []
    assert [batches.make(0), batches.make(1)] == [{"text": values[:2]}, {"text": values[2:4]}]
    assert unpacked == [0]
    assert [batch["text"] for batch in batches] == [values[start : start + 2] for start in range(0, 12, 2)]
    assert unpacked == [0, 1, 2]
