"""Rows with arrays in them, which travel by columns: what comes back is what was there, in views of one root."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker import ShippingError
from stoker.memory import Encoder, LooseArrays
from stoker.memory.row_columns import columns_of_rows
from tests.datasets import Doubled, Pair
from tests.unit.memory.test_codec import round_trip, slots

__all__ = ["slots"]

LEAVES = [
    lambda k: np.full(3, k),
    lambda k: np.full((2, 32), k, np.float32),
    lambda k: np.asfortranarray(np.full((2, 3), k, np.uint8)),
    lambda k: np.full(k % 4, k, np.int16),
    lambda k: np.full((k % 2 + 1, 2), k, ">f4"),
    lambda k: np.array(k),
    lambda k: np.zeros((0, 3)),
    lambda k: np.full(2, k, "M8[s]"),
    lambda k: np.full(2, f"t{k}"),
    lambda k: np.full(2, (k, 0.5), [("a", "i4"), ("b", "f8")]),
    lambda k: np.broadcast_to(np.int32(k), (4,)),
    lambda k: np.float32(k),
    lambda k: np.bool_(k % 2),
    lambda k: np.datetime64(k, "s"),
    lambda k: k,
    lambda k: 2**70 + k,
    lambda k: k % 2 == 0,
    lambda k: k if k % 2 else True,
    lambda k: None if k % 3 else "text",
    lambda k: f"text {k}",
    lambda k: date(2024, 1, 1 + k),
    lambda k: {k},
    lambda k: list(range(k % 4)),
    lambda k: {"a": [k], "b": (None,)},
    lambda k: Pair(k, "b"),
    lambda k: Doubled(np.full(3, k)),
    lambda k: OrderedDict(a=k),
    lambda k: np.array([k, None]),
    lambda k: np.ma.masked_array([k, 1], [True, False]),
    lambda k: (),
]
forms = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda many: lambda k: tuple(one(k) for one in many))
        | st.lists(inner, min_size=1, max_size=3).map(lambda many: lambda k: [one(k) for one in many])
        | st.tuples(inner, inner).map(lambda both: lambda k: Pair(both[0](k), both[1](k)))
        | st.dictionaries(st.sampled_from(["x", "y", 1, True, None]), inner, min_size=1, max_size=3).map(
            lambda many: lambda k: {key: one(k) for key, one in many.items()}
        )
    ),
    max_leaves=5,
)


def same(mine, theirs):
    assert type(mine) is type(theirs)
    if isinstance(theirs, np.ndarray):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert mine.tolist() == theirs.tolist()
        assert mine.flags.writeable
    elif isinstance(theirs, dict):
        assert list(map(repr, mine)) == list(map(repr, theirs))
        same(list(mine.values()), list(theirs.values()))
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs)
        for pair in zip(mine, theirs, strict=True):
            same(*pair)
    else:
        assert mine == theirs


@pytest.mark.parametrize("shared", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(form=forms, count=st.integers(8, 12), offset=st.sampled_from([0, 64]))
def test_rows_of_one_form_come_back_as_they_were(slots, shared, form, count, offset):
    rows = [form(k) for k in range(count)]
    got, _, _ = round_trip(slots, rows, shared=shared, offset=offset)
    same(got, rows)


@pytest.mark.parametrize("shared", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(form=forms, others=st.lists(st.tuples(st.integers(0, 9), forms), min_size=1, max_size=3))
def test_rows_of_several_forms_come_back_as_they_were(slots, shared, form, others):
    rows = [form(k) for k in range(10)]
    for place, other in others:
        rows[place] = other(place)
    got, _, _ = round_trip(slots, rows, shared=shared)
    same(got, rows)


ROWS = {
    "arrays": lambda k: np.full(3, k),
    "tuples": lambda k: (np.full(3, k), k),
    "lists": lambda k: [np.full(3, k), f"t{k}"],
    "dicts": lambda k: {"x": np.full(3, k), "label": f"t{k}"},
    "nested": lambda k: (np.full(3, k), {"caption": f"t{k}", "more": [None, np.float32(k)]}),
    "namedtuples": lambda k: Pair(np.full(3, k), Pair(k, "b")),
    "ragged": lambda k: (np.full(k, k), k),
    "with a container of its own form": lambda k: (np.full(3, k), ["a"] * k),
}


@pytest.mark.parametrize("name", ROWS)
def test_their_layout_has_a_leaf_for_each_column_and_not_for_each_row(slots, name):
    encoder = Encoder()
    encoder.encode([ROWS[name](k) for k in range(100)], slots.get(0))
    ((layout, _),) = encoder._layouts.values()
    assert len(layout.leaves) <= 4


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("size", [1, 3, 64, 1000, 40_000])
def test_arrays_are_aligned_views_of_the_slot_and_apart_from_each_other(slots, shared, size):
    rows = [(np.full(size, k, np.uint8), np.full(size + k, k, np.uint8)) for k in range(16)]
    got, root, _ = round_trip(slots, rows, shared=shared)
    arrays = [array for row in got for array in row]
    assert all(array.base is root and array.ctypes.data % 64 == 0 and array.flags.c_contiguous for array in arrays)
    for k, array in enumerate(arrays):
        array += 100 + k
    assert all((array == 100 + k + k // 2).all() for k, array in enumerate(arrays))
    assert all((array == k).all() for k, row in enumerate(rows) for array in row)


@pytest.mark.parametrize("shared", [False, True])
def test_arrays_and_containers_that_are_one_come_back_as_two_and_objects_as_one(slots, shared):
    array, inner, own = np.zeros(3), [1], {5}
    rows = [[array, array, inner, {"own": own}]] * 10
    got, _, _ = round_trip(slots, rows, shared=shared)
    got[0][0][0] = 7
    got[0][2].append(2)
    got[0][3]["own"].add(6)
    got[1][3]["new"] = 1
    assert got[0][1].tolist() == got[1][0].tolist() == array.tolist() == [0, 0, 0]
    assert got[1][2] == inner == [1]
    assert got[9][3] == {"own": {5, 6}}
    assert (got[0][3]["own"] is own) is shared


def test_containers_that_are_one_in_two_columns_come_back_as_two(slots):
    rows = []
    for k in range(10):
        inner = list(range(k))
        rows.append((np.zeros(3), inner, inner))
    got, _, _ = round_trip(slots, rows)
    got[5][1].append(9)
    assert got[5][2] == [0, 1, 2, 3, 4]


def test_keys_keep_their_order_and_their_type(slots):
    x = np.zeros(2)
    rows = [{"a": x, "b": x} if k % 2 else {"b": x, "a": x} for k in range(10)]
    assert [list(row) for row in round_trip(slots, rows)[0]] == [list(row) for row in rows]
    rows = [{1: x} if k % 2 else {True: x} for k in range(10)]
    assert [type(key) for row in round_trip(slots, rows)[0] for key in row] == [bool, int] * 5


def test_one_that_cannot_be_pickled_is_named_as_it_stands_in_its_row(slots):
    rows = [(np.zeros(3), {"own": k}) for k in range(10)]
    rows[7][1]["own"] = threading.Lock()
    with pytest.raises(ShippingError, match=r"batch\[7\]\[1\]\['own'\] is a lock that cannot be pickled"):
        round_trip(slots, rows)


def test_few_rows_of_many_columns_are_walked_over():
    assert columns_of_rows([[np.zeros(3)] * 100] * 8) is None
    assert columns_of_rows([[np.zeros(3)] * 8] * 8) is not None


def test_rows_within_a_batch_of_columns(slots):
    batch = {"x": np.arange(4), "rows": [(np.full(3, k), k) for k in range(10)], "name": "n"}
    got, _, _ = round_trip(slots, batch)
    same(got, batch)


@pytest.mark.parametrize(("size", "parts"), [(2**17, 10), (2**17 + 1, 0)], ids=["without gaps", "with gaps"])
def test_large_arrays_without_gaps_need_not_be_copied(slots, size, parts):
    loose = LooseArrays()
    loose.is_allowed = True
    rows = [(np.full(size, k, np.uint8), k) for k in range(10)]
    slot = slots.get(0)
    packed = Encoder().encode(rows, slot, 0, loose)
    found = loose.parts(slot.view().buffer, packed.end)
    assert len([part for part in found if len(part) == size]) == parts
    assert sum(map(len, found)) == packed.end


class TestTensors:
    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch", reason="torch is not installed")

    @pytest.mark.parametrize("shared", [False, True])
    @pytest.mark.parametrize("name", ["float32", "int64", "bool", "bfloat16", "complex64", "float8_e5m2"])
    @pytest.mark.parametrize("shape", [(), (3,), (2, 1, 5), (0, 3)])
    def test_each_is_a_tensor_of_its_own(self, slots, torch, shared, name, shape):
        rows = [(torch.full(shape, k % 2).to(getattr(torch, name)), k) for k in range(10)]
        got, _, _ = round_trip(slots, rows, shared=shared)
        for (mine, number), (theirs, expected) in zip(got, rows, strict=True):
            assert (type(mine), mine.dtype, mine.shape) == (torch.Tensor, theirs.dtype, theirs.shape)
            assert mine.stride() == theirs.stride()
            assert mine.tolist() == theirs.tolist()
            assert mine.untyped_storage().nbytes() == mine.nbytes
            assert not mine._is_view()
            assert number == expected

    def test_those_that_ask_for_gradients_still_do(self, slots, torch):
        rows = [(torch.ones(3, requires_grad=bool(k % 2)), k) for k in range(10)]
        got, _, _ = round_trip(slots, rows)
        assert [row[0].requires_grad for row in got] == [bool(k % 2) for k in range(10)]

    def test_axes_keep_their_order_in_memory(self, slots, torch):
        rows = [(torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),) for _ in range(10)]
        got, _, _ = round_trip(slots, rows)
        assert all(row[0].is_contiguous(memory_format=torch.channels_last) for row in got)

    def test_dtypes_that_differ_stay(self, slots, torch):
        rows = [torch.zeros(2, dtype=torch.bfloat16 if k % 2 else torch.int16) for k in range(10)]
        got, _, _ = round_trip(slots, rows)
        assert [tensor.dtype for tensor in got] == [tensor.dtype for tensor in rows]

    def test_sparse_ones_and_those_of_a_class_of_their_own_stay(self, slots, torch):
        sparse = [(torch.eye(3).to_sparse(), k) for k in range(10)]
        assert all(row[0].is_sparse for row in round_trip(slots, sparse)[0])
        learned = [(torch.nn.Parameter(torch.ones(2)), k) for k in range(10)]
        assert all(type(row[0]) is torch.nn.Parameter for row in round_trip(slots, learned)[0])
