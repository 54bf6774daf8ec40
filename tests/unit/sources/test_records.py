"""JSON lines decoded into structs, against the same lines decoded into dicts: values, types, orders and errors."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.sources.files.columns import Columns, gathered
from stoker.sources.files.json_records import JsonRecordDecoder
from stoker.sources.files.texts import PackedTexts, Texts

KEYS = ["id", "text", "a b", "ü", "", 'quo"te', "class", "type"]
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
odd = (
    st.none()
    | st.booleans()
    | st.lists(st.integers(), max_size=2)
    | st.just(2**70)
    | st.dictionaries(st.just("x"), numbers)
)
KINDS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "str": st.text(),
    "mixed": numbers | st.text() | odd,
}


@st.composite
def files(draw):
    """Blocks of lines; most have the same keys, and under each key values of one kind."""
    kinds = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    record = st.fixed_dictionaries({key: KINDS[kind] for key, kind in kinds.items()})
    other = st.dictionaries(st.sampled_from(KEYS), numbers | st.text() | odd, max_size=4)
    regular = draw(st.booleans())
    turned = record.map(lambda one: dict(reversed(one.items())))
    lines = st.lists(record if regular else record | turned | other, min_size=1, max_size=5)
    return draw(st.lists(lines, min_size=1, max_size=4))


def encoded(lines) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def assert_same_samples(mine, theirs):
    assert isinstance(mine, Columns) == isinstance(theirs, Columns)
    if not isinstance(theirs, Columns):
        assert json.dumps(mine, sort_keys=True) == json.dumps(theirs, sort_keys=True)  # which tells 1 from 1.0 and true
        return
    assert list(mine.columns) == list(theirs.columns)
    for key, column in theirs.columns.items():
        found = mine.columns[key]
        assert type(found.rows() if isinstance(found, Texts | PackedTexts) else found) is type(column)
        assert getattr(mine.columns[key], "dtype", None) == getattr(column, "dtype", None)
    mine_rows, their_rows = mine.rows(), theirs.rows()
    assert mine_rows == their_rows
    assert [list(map(type, row.values())) for row in mine_rows] == [list(map(type, row.values())) for row in their_rows]


@settings(deadline=None)
@given(files(), st.sampled_from([None, Texts.of, PackedTexts.of]))
def test_structs_give_the_columns_that_dicts_give(blocks, pack):
    decode, general = JsonRecordDecoder(pack=pack).decode, msgspec.json.Decoder().decode_lines
    lines = list(map(encoded, blocks))
    assert_same_samples(gathered(map(decode, lines), pack=pack), gathered(map(general, lines)))


def test_lines_that_are_alike_need_no_dicts():
    decoder = JsonRecordDecoder()
    blocks = [encoded([{"id": n, "text": "t" * n, "ok": n > 3, "score": n / 2}]) for n in range(6)]
    decoder.decode(blocks[0])
    decoder._decode_any = None  # type: ignore[assignment]
    found = [decoder.decode(block) for block in blocks[1:]]
    assert all(isinstance(columns, Columns) for columns in found)
    assert [row for columns in found for row in columns.rows()] == [
        {"id": n, "text": "t" * n, "ok": n > 3, "score": n / 2} for n in range(1, 6)
    ]
    assert found[0].columns["text"] == ["t"]
    assert [found[0].columns[key].dtype for key in ("id", "ok", "score")] == [np.int64, np.bool_, np.float64]


FIRST = {"n": 1, "t": "a"}
MISFITS = {
    "a null": '{"n": 1, "t": null}',
    "a key more": '{"n": 1, "t": "a", "x": 1}',
    "a key less": '{"n": 1}',
    "another type": '{"n": "1", "t": "a"}',
    "a float among whole numbers": '{"n": 1.0, "t": "a"}\n{"n": 1, "t": "a"}',
    "floats in place of whole numbers": '{"n": 1.0, "t": "a"}',
    "a bool": '{"n": true, "t": "a"}',
    "more than 64 bits": '{"n": 18446744073709551616, "t": "a"}',
    "no object": "3",
    "nested": '{"n": [1], "t": "a"}',
}


@pytest.mark.parametrize("lines", MISFITS.values(), ids=MISFITS)
def test_lines_that_do_not_fit_are_decoded_as_any_json(lines):
    blocks = [encoded([FIRST]), encoded([FIRST] * 2), f"{lines}\n".encode(), encoded([FIRST])]
    general = msgspec.json.Decoder().decode_lines
    assert_same_samples(gathered(map(JsonRecordDecoder().decode, blocks)), gathered(map(general, blocks)))


@pytest.mark.parametrize(
    "lines", ['{"n": 1, "n": 2, "t": "a"}', '{"n": true, "n": 2, "t": "a"}'], ids=["one type", "two"]
)
def test_of_a_key_that_is_there_twice_the_last_one_counts(lines):
    decoder = JsonRecordDecoder()
    decoder.decode(encoded([FIRST]))
    assert decoder.decode(f"{lines}\n".encode()).rows() == [{"n": 2, "t": "a"}]


@pytest.mark.parametrize("lines", ['{"n": 1, "t": "a"', '{"n": 1, "t": "\x01"}', '{"n": 1e400, "t": "a"}'])
def test_what_is_no_json_is_an_error_either_way(lines):
    decoder = JsonRecordDecoder()
    decoder.decode(encoded([FIRST]))
    with pytest.raises(msgspec.DecodeError) as error:
        decoder.decode(lines.encode())
    with pytest.raises(msgspec.DecodeError) as general:
        msgspec.json.Decoder().decode_lines(lines.encode())
    assert str(error.value) == str(general.value)


def test_more_fields_than_structs_are_quick_with_are_columns_too():
    wide = [{f"field {n}": n for n in range(100)}]
    found = gathered(map(JsonRecordDecoder().decode, [encoded(wide)] * 2))
    assert found.rows() == wide * 2
