"""to="arrow": record batches over the batch's own memory, for dicts of columns and for nothing else."""

from __future__ import annotations

import datetime
import gc
import weakref
from collections import OrderedDict
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import Loader
from stoker.bridges import bridge
from stoker.sources.files.ragged import Nullable, Ragged
from stoker.sources.files.texts import Texts
from tests.bridges.test_leases import Noise, slots

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def converted(column, key="x"):
    return bridge("arrow")({key: column}).column(0)


def address(array) -> int:
    """Of its values, through lists."""
    while pa.types.is_fixed_size_list(array.type):
        array = array.flatten()
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (0, 3)], ids=str)
def test_values_types_and_memory_are_the_same(make_leaf, shape, dtype):
    leaf = make_leaf(shape, dtype)
    found = converted(leaf)
    found.validate(full=True)
    assert found.to_pylist() == leaf.tolist()
    inner = found.type
    for size in shape[1:]:
        assert inner.list_size == size
        inner = inner.value_type
    assert inner == pa.from_numpy_dtype(dtype)
    if leaf.size and dtype.kind != "b":  # of which Arrow has eight in a byte
        assert address(found) == leaf.ctypes.data


@pytest.mark.parametrize("dtype", ["M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ns]", "M8[D]"])
def test_times_are_times_and_nat_is_null(dtype):
    array = np.array([0, 86_400, "NaT"], dtype)
    found = converted(array)
    assert found.null_count == 1
    assert found.to_numpy(zero_copy_only=False).astype(dtype).tolist() == array.tolist()


def test_a_record_batch_keeps_the_batch_alive_and_lets_it_go(make_leaf, is_held):
    leaf = make_leaf((100,), "float32")
    held = is_held(leaf)
    column = bridge("arrow")({"x": leaf}).slice(10, 20).column("x")
    del leaf
    assert held()
    del column
    assert not held()


def test_columns_of_strings_and_lists_are_not_copied():
    data, values = np.frombuffer(bytearray("aäb".encode()), np.uint8), np.arange(4.0)
    root = weakref.ref(data)
    batch = bridge("arrow")(
        {
            "text": Texts(data, np.array([0, 1, 3, 3, 4]), np.array([False, False, True, False])),
            "list": Ragged(values, np.array([0, 2, 2, 3, 4]), np.array([False, True, False, False])),
        }
    )
    batch.validate(full=True)
    assert batch.to_pydict() == {"text": ["a", "ä", None, "b"], "list": [[0.0, 1.0], None, [2.0], [3.0]]}
    assert batch.schema == pa.schema({"text": pa.string(), "list": pa.list_(pa.float64())})
    assert batch.column("text").buffers()[2].address == data.ctypes.data
    assert batch.column("list").values.buffers()[1].address == values.ctypes.data
    del data
    assert root() is not None
    del batch
    gc.collect()
    assert root() is None


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_missing_numbers_are_null(values):
    nulls = np.array([value is None for value in values])
    found = converted(Nullable(np.array([value or 0 for value in values], np.int32), nulls))
    assert (found.type, found.to_pylist()) == (pa.int32(), values)
    masked = np.ma.masked_array([value or 0 for value in values], nulls)
    assert converted(masked).to_pylist() == values


def test_nan_is_no_null():
    assert converted(np.array([np.nan, 1.0])).null_count == 0
    assert converted(Nullable(np.array([np.nan, np.nan]), np.array([True, False]))).null_count == 1


OBJECTS = {
    "strings": (["a", None, "ä"], "string"),
    "bytes": ([b"a", None, b""], "binary"),
    "decimals": ([Decimal("1.5"), None, Decimal("2.25")], "decimal128(3, 2)"),
    "times of day": ([datetime.time(1), None, datetime.time(2)], "time64[us]"),
    "lists": ([["a"], None, []], "list<item: string>"),
    "dicts": ([{"a": 1}, None, {"a": 2}], "struct<a: int64>"),
}


@pytest.mark.parametrize(("values", "kind"), OBJECTS.values(), ids=OBJECTS)
def test_objects_that_arrow_knows_become_its_own(values, kind):
    found = converted(values)
    assert (str(found.type), found.to_pylist()) == (kind, values)


@pytest.mark.parametrize(("array", "kind"), [(np.array(["a", "ä"]), "string"), (np.array([b"a", b"b"]), "binary")])
def test_arrays_of_strings_become_strings(array, kind):
    assert (str(converted(array).type), converted(array).to_pylist()) == (kind, array.tolist())


def test_dicts_in_dicts_are_structs():
    found = bridge("arrow")(OrderedDict(b=np.arange(2), a={"y": ["u", "v"], "x": np.ones((2, 2))}))
    assert found.schema.names == ["b", "a"]
    assert found.to_pylist() == [{"b": n, "a": {"y": "uv"[n], "x": [1.0, 1.0]}} for n in range(2)]


@pytest.mark.parametrize("array", [np.arange(6)[::-1], np.arange(6, dtype=">i4"), np.arange(12)[::2]])
def test_what_cannot_be_shared_is_copied(array):
    assert converted(array).to_pylist() == array.tolist()


def test_tensors_become_columns_over_their_memory():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.float32).reshape(3, 2)
    found = converted(tensor)
    assert found.to_pylist() == tensor.tolist()
    assert address(found) == tensor.data_ptr()


NO_FORM = {
    "complex": np.zeros(2, "c8"),
    "long double": np.zeros(2, "g"),
    "records": np.zeros(2, [("a", "i4")]),
    "no axis": np.float64(3),
    "an array without axes": np.array(3),
    "a number": 3,
    "None": None,
    "a bare string": "ab",
    "arrays one for each field": [np.arange(2), np.arange(2)],
    "a tuple": (np.arange(2), np.arange(2)),
    "objects": [object(), object()],
    "values of several kinds": ["a", 1],
    "half a pair of surrogates": ["\ud800", "a"],
    "an int of more than 64 bits": [2**70, 1],
    "objects in an array of two axes": np.array([["a", None]], object),
}


@pytest.mark.parametrize("column", NO_FORM.values(), ids=NO_FORM)
def test_what_arrow_has_no_form_for_is_an_error_with_its_path(column):
    with pytest.raises(TypeError, match=r"batch\['x'\]\['y'\] is .* for which Arrow has no form"):
        bridge("arrow")({"x": {"y": column}})


@pytest.mark.parametrize("batch", [np.arange(3), [np.arange(3)], (np.arange(3),), "text", None], ids=repr)
def test_a_batch_that_is_no_dict_is_an_error_that_says_what_to_do(batch):
    with pytest.raises(TypeError, match="let the samples be dicts"):
        bridge("arrow")(batch)


@pytest.mark.parametrize("batch", [{}, {3: np.arange(2)}, {"x": {}}, {"x": {None: np.arange(2)}}], ids=repr)
def test_columns_have_names(batch):
    with pytest.raises(TypeError, match="let all keys be strings"):
        bridge("arrow")(batch)


def test_columns_of_different_lengths_are_told():
    with pytest.raises(ValueError, match=r"different lengths: \{'a': 2, 'b': 3\}"):
        bridge("arrow")({"a": np.arange(2), "b": np.arange(3)})


def test_more_than_offsets_can_count_is_an_error():
    many = Ragged(np.zeros(0), np.array([0, 2**31]))
    with pytest.raises(ValueError, match="pass a smaller batch_size"):
        converted(many)


class Named(Noise):
    """A dict, with noise that no other sample has, and a name."""

    def __getitem__(self, index):
        return {"noise": super().__getitem__(index), "name": f"n{index}"}


def test_record_batches_lie_in_the_slots_that_workers_wrote_and_never_change():
    with Loader(Named(), 4, workers=2, to="arrow") as loader:
        held = list(loader)
        assert all(any(address(batch.column("noise")) in slot for slot in slots()) for batch in held[:4])
        for _batch in loader:
            pass
    for step, batch in enumerate(held):
        expected = [Named()[4 * step + k] for k in range(4)]
        assert batch.column("name").to_pylist() == [one["name"] for one in expected]
        np.testing.assert_array_equal(
            batch.column("noise").flatten().to_numpy().reshape(4, -1), np.stack([one["noise"] for one in expected])
        )
