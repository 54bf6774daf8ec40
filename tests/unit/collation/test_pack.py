"""Packed rows unpack to the very sequences, of whatever form these are; what cannot be packed is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.collation import Pack
from stoker.collation.columns import made
from stoker.errors import CollateError

sequences = st.lists(st.lists(st.integers(1, 1000), max_size=20), max_size=30)


def packed(pack: Pack, samples: list, indices=None):
    columns, count = pack.columns(samples, range(len(samples)) if indices is None else indices)
    rows = made(columns)
    assert {array.shape for array in rows.values()} == {(count, pack.length)}
    return rows


def unpacked(rows, name: str) -> list[list]:
    """The pieces of all rows, told by their segment ids; what is padding is checked."""
    found = []
    for tokens, segments, positions in zip(rows[name], rows["segment_ids"], rows["position_ids"], strict=True):
        used = int((segments != 0).sum())
        assert segments[used:].tolist() == positions[used:].tolist() == [0] * (len(segments) - used)
        assert list(dict.fromkeys(segments[:used].tolist())) == list(range(1, int(segments.max()) + 1))
        for number in range(1, int(segments.max()) + 1):
            piece = segments == number
            assert positions[piece].tolist() == list(range(int(piece.sum())))
            found.append(tokens[piece].tolist())
    return found


def naive_pieces(values: list[list[int]], length: int, long: str) -> list[list[int]]:
    if long == "drop":
        return [value for value in values if 0 < len(value) <= length]
    if long == "truncate":
        return [value[:length] for value in values if value]
    return [value[start : start + length] for value in values for start in range(0, len(value), length)]


@given(sequences, st.integers(1, 12), st.sampled_from(["split", "truncate", "drop"]))
def test_rows_unpack_to_the_very_sequences(values, length, long):
    rows = packed(Pack(length, long=long), [np.array(value, np.int32) for value in values])
    assert Counter(map(tuple, unpacked(rows, "tokens"))) == Counter(map(tuple, naive_pieces(values, length, long)))


@given(sequences, st.integers(1, 12))
def test_other_keys_are_packed_alongside(values, length):
    samples = [{"input_ids": value, "labels": [-one for one in value], "name": "x"} for value in values]
    rows = packed(Pack(length, keys=("input_ids", "labels"), pad={"labels": -100}), samples)
    assert list(rows) == ["input_ids", "labels", "segment_ids", "position_ids"]
    padding = rows["segment_ids"] == 0
    assert (rows["labels"][padding] == -100).all()
    assert (rows["input_ids"][padding] == 0).all()
    assert (rows["labels"][~padding] == -rows["input_ids"][~padding]).all()
    assert Counter(map(tuple, unpacked(rows, "input_ids"))) == Counter(
        map(tuple, naive_pieces(values, length, "split"))
    )


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64", "float32", "bool"])
def test_the_dtype_is_kept(dtype):
    rows = packed(Pack(4), [np.ones(3, dtype), np.ones(2, dtype)])
    assert rows["tokens"].dtype == dtype
    assert rows["segment_ids"].dtype == rows["position_ids"].dtype == np.int32


def test_sequences_of_several_types_have_their_common_type_and_empty_ones_have_no_say():
    rows = packed(Pack(4), [np.ones(3, np.int32), [], np.ones(1, np.uint8), []])
    assert rows["tokens"].dtype == np.int32
    assert packed(Pack(4), [[], []])["tokens"].shape == (0, 4)


def test_lists_tuples_ranges_and_slices_of_arrays_are_packed():
    rows = packed(Pack(4), [[1, 2], (3,), range(4, 6), np.arange(12)[6:12:2]])
    assert Counter(map(tuple, unpacked(rows, "tokens"))) == Counter([(1, 2), (3,), (4, 5), (6, 8, 10)])


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    rows = packed(Pack(4), [torch.arange(3), torch.arange(6), torch.arange(0)])
    assert {type(one) for one in rows.values()} == {torch.Tensor}
    assert rows["tokens"].dtype == torch.int64
    assert rows["tokens"].tolist() == [[0, 1, 2, 0], [0, 1, 2, 3], [4, 5, 0, 0]]
    weights = packed(Pack(4, pad=0.5), [torch.ones(3, dtype=torch.bfloat16)])["tokens"]
    assert weights.tolist() == [[1, 1, 1, 0.5]]
    with pytest.raises(CollateError, match=r"several types \(int32, int64\): give all one type"):
        packed(Pack(4), [torch.arange(3), torch.arange(3, dtype=torch.int32)])


@pytest.mark.parametrize(
    ("samples", "pack", "message"),
    [
        ([[1], np.ones((2, 2))], Pack(4), r"the value of sample 8 is a ndarray of shape \(2, 2\)"),
        ([[1], 3], Pack(4), r"sample 8 is a int of shape \(\) .*, and no sequence of numbers"),
        (["abc"], Pack(4), "sample 7 is a str of shape"),
        ([["a", "b"]], Pack(4), "sample 7 is a list of .* type <U1, and no sequence of numbers"),
        ([[[1], [2, 3]]], Pack(4), "sample 7 is a list of"),
        ([[1], {"ids": [1]}], Pack(4), r"sample 8 is a dict with the keys 'ids': pass Pack\(..., keys=...\)"),
        ([{"ids": [1]}, [1]], Pack(4, keys="ids"), r"sample 8 is a list and no dict: leave Pack\(keys=...\) out"),
        ([{"ids": [1]}, {"x": 1}], Pack(4, keys="ids"), "sample 8 has no key 'ids', only 'x'"),
        ([{"a": [1, 2], "b": [1]}], Pack(4, keys=("a", "b")), "sample 7 has 2 tokens in 'a' and 1 in 'b'"),
        ([np.ones(2, np.uint8)], Pack(4, pad=-1), "cannot hold the padding value=-1"),
        ([np.ma.masked_array([1, 2], [0, 1])], Pack(4), "masked"),
    ],
)
def test_what_cannot_be_packed_is_an_error_that_names_the_sample(samples, pack, message):
    with pytest.raises(CollateError, match=message):
        packed(pack, samples, indices=range(7, 7 + len(samples)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"length": 0}, ValueError, r"Pack\(length=0\): pass a number of tokens, 1 or more"),
        ({"length": 2**31}, ValueError, "positions are of 32 bits"),
        ({"length": 4, "window": 0}, ValueError, r"Pack\(window=0\): pass a number of samples"),
        ({"length": 4, "long": "cut"}, ValueError, 'pass "split", "truncate" or "drop"'),
        ({"length": 4, "keys": 3}, TypeError, "pass a name, or several"),
        ({"length": 4, "keys": ()}, ValueError, "pass one name or more, each once"),
        ({"length": 4, "keys": ("a", "a")}, ValueError, "each once"),
        ({"length": 4, "keys": "segment_ids"}, ValueError, "which the packing makes"),
        ({"length": 4, "keys": "a", "pad": {"b": 1}}, ValueError, r"'b', which is not among keys=\['a'\]"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments, error, message):
    with pytest.raises(error, match=message):
        Pack(**arguments)
