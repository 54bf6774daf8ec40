"""Default collation and padding, against stacking by hand."""

from __future__ import annotations

import re
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import stoker
from stoker import CollateError
from stoker.collation import Objects, collate
from stoker.collation.columns import Whole, materialize
from stoker.collation.tree import flatten, map_leaves, paths, unflatten
from tests.datasets import Doubled, Pair, Record


def made(tree):
    """Columns as arrays, objects as lists."""
    return map_leaves(
        lambda leaf: leaf.values if isinstance(leaf, Objects) else materialize(leaf) if leaf is not None else None, tree
    )


shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
dtypes = st.sampled_from([np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_, "M8[s]", "S3"])


@given(data=st.data(), shape=shapes, dtype=dtypes, count=st.integers(1, 5))
def test_arrays_are_stacked(data, shape, dtype, count):
    samples = [data.draw(arrays.arrays(dtype, shape)) for _ in range(count)]
    expected = np.stack(samples)
    got = made(collate(samples))
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


def test_views_of_any_stride_are_stacked():
    base = np.arange(120).reshape(2, 3, 4, 5)
    samples = [base[0].transpose(2, 0, 1), base[1].transpose(2, 0, 1)]
    assert np.array_equal(made(collate(samples)), np.stack(samples))


def test_mixed_dtypes_are_promoted_as_numpy_does():
    got = made(collate([np.array([1], np.int32), np.array([0.5], np.float32)]))
    assert got.dtype == np.float64
    assert got.tolist() == [[1.0], [0.5]]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], np.int64),
        ([True, False], np.bool_),
        ([1, 2.5], np.float64),
        ([1j, 2], np.complex128),
        ([np.float16(1), np.float16(2)], np.float16),
        ([np.datetime64(1, "s"), np.datetime64(2, "s")], np.dtype("M8[s]")),
    ],
)
def test_numbers_become_arrays(values, dtype):
    got = made(collate(values))
    assert got.dtype == dtype
    assert got.tolist() == np.array(values).tolist()


def test_each_kind_of_container_and_leaf():
    samples = [
        {"p": Pair(k, [str(k), b"x"]), "r": Record(np.full(2, k), None), "o": OrderedDict(a=k), "t": (1.5, k > 0)}
        for k in range(3)
    ]
    got = made(collate(samples))
    assert got["p"].left.tolist() == [0, 1, 2]
    assert got["p"].right == [["0", "1", "2"], [b"x", b"x", b"x"]]
    assert type(got["r"]) is Record
    assert got["r"].image.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert got["r"].label is None
    assert type(got["o"]) is OrderedDict
    assert got["t"][1].tolist() == [False, True, True]
    assert type(got["t"]) is tuple


def test_a_namedtuple_is_not_made_by_its_own_constructor_again():
    got = made(collate([{"x": Doubled(np.full(2, k))} for k in range(3)]))["x"]
    assert type(got) is Doubled
    assert got.half.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert got.whole.tolist() == [[0, 0], [2, 2], [4, 4]]


def test_objects_that_are_no_arrays_travel_as_lists():
    things = [object(), object()]
    assert made(collate([{"x": thing} for thing in things]))["x"] == things
    masked = [np.ma.masked_array([1, 2], [True, False])] * 2
    assert collate(masked).values == masked
    assert made(collate(["a", None])) == ["a", None]


def test_a_whole_batch_from_getitems_is_taken_as_it_is():
    batch = np.arange(6).reshape(3, 2)
    assert made(collate(batch)).tolist() == batch.tolist()


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([{"a": [np.zeros(3)]}, {"a": [np.zeros(4)]}], ["sample['a'][0]", "(3,)", "(4,)", "7", "9", "stoker.pad"]),
        ([np.zeros((2, 3)), np.zeros((2, 4))], ["(2, 3)", "(2, 4)", "7", "9"]),
        ([np.zeros((2, 3)), np.zeros((1, 3)), np.zeros((3, 3))], ["(2, 3)", "(1, 3)", "7", "9"]),
        ([np.zeros(2), np.zeros(())], ["(2,)", "()", "7", "9"]),
        ([np.zeros(()), np.zeros(2)], ["()", "(2,)", "7", "9"]),
        ([np.zeros((2, 3)), np.zeros(6)], ["(2, 3)", "(6,)", "7", "9"]),
        ([{"a": 1}, {"b": 1}], ["['a']", "['b']", "7", "9"]),
        ([[1, 2], [1]], ["2 elements", "1 in", "7", "9"]),
        ([Record(np.zeros(1), 1), Record(3, 1)], ["sample.image", "ndarray", "int", "7", "9"]),
        ([1, "x"], ["int", "str"]),
        (["x", np.zeros(2)], ["str", "ndarray"]),
        ([None, 1], ["NoneType", "int"]),
        ([{"a": 1}, 3], ["dict", "int"]),
        ([(1, 2), [1, 2]], ["tuple", "list"]),
        ([2**70, 1], ["64 bits"]),
        ([np.void(b"abc"), np.void(b"abcd")], ["|V3", "|V4", "7", "9"]),
        ([1, np.str_("x")], ["int", "str_", "7", "9"]),
        ([np.zeros(1), np.array(["x"])], ["float64", "<U1", "7", "9"]),
        ([np.zeros(1, "M8[s]"), np.zeros(1, "m8[s]")], ["datetime64", "timedelta64", "7", "9"]),
        ([np.zeros(1, [("a", "i4")]), np.zeros(1, [("b", "i4")])], ["'a'", "'b'", "7", "9"]),
    ],
)
def test_samples_that_do_not_fit_together_are_an_error_that_names_leaf_and_indices(samples, words):
    with pytest.raises(CollateError) as caught:
        made(collate(samples, [7, 9, 11]))
    for word in words:
        assert word in str(caught.value)


BIG = 2**53 + 1  # float64 has no such number
LOSSY = {
    "beyond both signs": ([2**63 + 1, -1], 2**63 + 1),
    "over 64 bits": ([2**70, 0.5], 2**70),
    "over all floats": ([10**400, 0.5], 10**400),
    "beside a float": ([BIG, 0.5], BIG),
    "beside a complex": ([1j, -BIG], -BIG),
    "of numpy, beside a float": ([np.float32(0.5), np.int64(BIG)], BIG),
    "signed and unsigned": ([np.int64(-1), np.uint64(2**63 + 1)], 2**63 + 1),
    "arrays, signed and unsigned": ([np.array([2**60 + 1]), np.array([1], np.uint64)], 2**60 + 1),
    "arrays, the biggest": ([np.array([1]), np.array([2**64 - 1], np.uint64)], 2**64 - 1),
    "arrays beside floats": ([np.array([[0.5]], np.float32), np.array([[-BIG]])], -BIG),
    "0-d arrays": ([np.array(0.5), np.array(BIG)], BIG),
    "fields": ([np.full(1, BIG, [("a", "i8")]), np.zeros(1, [("a", "f8")])], BIG),
    "fields with a shape": ([np.full(1, BIG, [("a", "i8", 2)]), np.zeros(1, [("a", "f8", 2)])], BIG),
    "records": ([np.full((), BIG, [("a", "i8")])[()], np.zeros((), [("a", "f8")])[()]], BIG),
    "dates": ([np.datetime64("9999-01-01"), np.datetime64(1, "ns")], "9999-01-01"),
    "arrays of dates": ([np.array(["9999-01-01"], "M8[D]"), np.zeros(1, "M8[ns]")], "9999-01-01"),
}


@pytest.mark.parametrize("collated", [collate, stoker.pad])
@pytest.mark.parametrize("case", LOSSY)
def test_no_digit_is_lost_without_a_word(case, collated):
    values, lost = LOSSY[case]
    with pytest.raises(CollateError) as caught:
        made(collated([{"x": value} for value in values]))
    for word in ("sample['x']", str(lost), "collate="):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2**64 - 1, 5], np.uint64),
        ([-(2**63), 2**63 - 1], np.int64),
        ([True, 7], np.int64),
        ([2**53, 0.5], np.float64),
        ([np.uint64(3), np.int64(-1)], np.float64),
        ([np.array([2**53]), np.array([0.5])], np.float64),
        ([np.array([1]), np.array([2**63], np.uint64)], np.float64),
        ([np.array([True]), np.array([-3], np.int8)], np.int8),
        ([np.array(["2020-01-01"], "M8[D]"), np.array(["NaT"], "M8[ns]")], "M8[ns]"),
    ],
)
def test_numbers_of_several_types_that_fit_together_do(values, dtype):
    got = made(collate(values))
    assert got.dtype == dtype
    assert got.tolist() == [value.astype(dtype).tolist() if hasattr(value, "astype") else value for value in values]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("i8", 0.5), ("i8", float("nan")), ("u1", -1), ("?", 2), ("f4", 1e60), ("U2", "abc"), ("i8", "x")],
)
def test_a_padding_value_that_does_not_fit_is_an_error(dtype, value):
    with pytest.raises(CollateError, match=rf"sample\['x'\] is of type .*value={re.escape(repr(value))}"):
        stoker.pad([{"x": np.zeros(1, dtype)}, {"x": np.zeros(2, dtype)}], value=value)


def test_pad_fills_every_axis_up():
    got = stoker.pad([{"x": np.ones((1, 3)), "n": 1, "s": "a"}, {"x": np.ones((2, 1)), "n": 2, "s": "b"}], value=-1)
    assert got["x"].tolist() == [[[1, 1, 1], [-1, -1, -1]], [[1, -1, -1], [1, -1, -1]]]
    assert got["n"].tolist() == [1, 2]
    assert got["s"] == ["a", "b"]


@given(st.lists(arrays.arrays(np.int32, arrays.array_shapes(min_dims=1, max_dims=2, max_side=4)), min_size=1))
def test_pad_keeps_every_value(samples):
    if len({sample.ndim for sample in samples}) > 1:
        with pytest.raises(CollateError, match="axes"):
            stoker.pad(samples)
        return
    got = stoker.pad(samples, value=0)
    for row, sample in zip(got, samples, strict=True):
        assert np.array_equal(row[tuple(map(slice, sample.shape))], sample)
        assert row.sum() == sample.sum()


def test_tensors_are_stacked_and_stay_tensors():
    torch = pytest.importorskip("torch")
    samples = [{"h": torch.full((2,), k, dtype=torch.bfloat16), "f": torch.arange(3.0) + k} for k in range(2)]
    got = collate(samples)
    assert (got["h"].tensor, got["f"].tensor) == ("bfloat16", "float32")
    assert materialize(got["f"]).tolist() == [[0, 1, 2], [1, 2, 3]]
    padded = stoker.pad([torch.ones(1, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)], value=-7)
    assert padded.tolist() == [[1, -7], [1, 1]]
    with pytest.raises(CollateError, match=r"float32.*float64"):
        collate([torch.ones(1), torch.ones(1).double()])


trees = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Record, inner, inner)
    ),
    max_leaves=10,
)


@given(trees)
def test_a_tree_is_its_leaves_and_its_shape(tree):
    leaves, shape = flatten(tree)
    assert unflatten(shape, iter(leaves)) == tree
    assert map_leaves(lambda leaf: leaf, tree) == tree
    found = [eval(path, {"batch": tree}) for path in paths(shape)]
    assert all(a is b for a, b in zip(found, leaves, strict=True))


def test_a_column_is_a_leaf():
    column = Whole(np.zeros(3))
    assert flatten({"x": column})[0] == [column]


def test_padding_arrays_beside_something_else_is_an_error():
    with pytest.raises(CollateError, match="sample is ndarray in sample 0 and tuple in sample 1"):
        stoker.pad([np.zeros(2), (np.zeros(2), 1)])


def test_what_pad_gives_is_no_view_of_the_batch_that_it_got():
    given = np.zeros((2, 3))
    assert not np.shares_memory(stoker.pad(given), given)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"x": x}, lambda x: (x, 1)], ids=["bare", "dict", "tuple"])
def test_a_masked_array_behind_a_plain_one_does_not_lose_its_mask(wrap):
    plain, masked = np.zeros(2), np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(CollateError, match=r"ndarray in sample 0 and MaskedArray in sample 2"):
        collate([wrap(plain), wrap(plain), wrap(masked)])


@pytest.mark.parametrize("lengths", [[3, 1], [3, 3], [4, 2], [0, 0], [5]])
def test_pad_fills_the_first_axis_up_to_a_multiple(lengths: list[int]) -> None:
    samples = [{"tokens": np.arange(1, n + 1), "other": np.ones((n, 3)), "n": n} for n in lengths]
    batch = stoker.pad(multiple_of=4, value=-1)(samples)
    width = -(-max(lengths) // 4) * 4
    assert batch["other"].shape == (len(lengths), width, 3)
    assert batch["n"].tolist() == lengths
    for row, n in zip(batch["tokens"].tolist(), lengths, strict=True):
        assert row == [*range(1, n + 1), *[-1] * (width - n)]


def test_pad_fills_up_the_rows_of_one_array() -> None:
    assert stoker.pad(np.ones((2, 3)), multiple_of=4).tolist() == [[1, 1, 1, 0]] * 2


@pytest.mark.parametrize("wrong", [0, -8, 1.5, True, "8"])
def test_pad_refuses_what_is_no_multiple_before_the_first_batch(wrong: object) -> None:
    with pytest.raises(ValueError, match="multiple_of"):
        stoker.pad(multiple_of=wrong)  # type: ignore[arg-type]
