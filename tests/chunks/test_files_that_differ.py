"""Files whose columns do not agree: in type, in order, or in that there are any."""

from __future__ import annotations

import decimal
import itertools
from collections import Counter

import pyarrow as pa
import pyarrow.parquet
import pytest

from stoker import ChunkError, Chunks, Loader
from tests.chunks.columns import DAY, plain

OTHERS = {
    "int32 and int64": (pa.array([1], pa.int32()), pa.array([2], pa.int64()), "int64", [1, 2]),
    "int and float": (pa.array([1]), pa.array([0.5]), "float32", [1.0, 0.5]),
    "float and nothing": (pa.array([1.5]), pa.array([None], pa.null()), "float64", [1.5, None]),
    "string and int": (pa.array(["1"]), pa.array([2]), str, ["1", "2"]),
    "string and bytes": (pa.array(["1"]), pa.array([b"2"]), object, ["1", b"2"]),
    "times": (pa.array([DAY], pa.timestamp("s")), pa.array([DAY], pa.timestamp("ns")), "M8[us]", [DAY, DAY]),
    "lists": (pa.array([[1]]), pa.array([[0.5]]), "float64", [[1.0], [0.5]]),
    "list and fixed": (pa.array([[1, 2]]), pa.array([[3, 4]], pa.list_(pa.int64(), 2)), ("int64", 2), [[1, 2], [3, 4]]),
    "fixed of other sizes": (
        pa.array([[1]], pa.list_(pa.int8(), 1)),
        pa.array([[3, 4]], pa.list_(pa.int8(), 2)),
        object,
        [[1], [3, 4]],
    ),
    "number and struct": (pa.array([1]), pa.array([{"a": 1}]), object, [1, {"a": 1}]),
    "decimal and float": (pa.array([decimal.Decimal("1.5")]), pa.array([2.5]), "float64", [1.5, 2.5]),
    "bool and int": (pa.array([True]), pa.array([2]), "int64", [1, 2]),
}


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_a_column_of_other_types_in_two_files_is_an_error_and_dtypes_make_them_one(tmp_path, case, across, together):
    """Read together, or one after the other."""
    first, second, dtype, values = OTHERS[case]
    pyarrow.parquet.write_table(pa.table({"x": first}), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pa.table({"x": second}), tmp_path / "b.parquet")
    options = {"across_chunks": across, "interleave": 2 if together else 1}

    def load(**more):
        with Loader(Chunks(tmp_path, **options, **more), 2 if across else 1, shuffle=together, seed=0) as loader:
            return [plain(value) for batch in loader for value in batch["x"]]

    if across or case != "fixed of other sizes":  # batches of one file each may have rows of another length
        with pytest.raises(ChunkError, match=r"(?s)[ab]\.parquet.*[ab]\.parquet: pass Chunks"):
            load()
    assert Counter(map(repr, load(dtypes={"x": dtype}))) == Counter(map(repr, values))


def test_a_column_of_nothing_but_nulls_goes_with_any_list(tmp_path):
    """As pandas writes a column of strings in which none is there."""
    for name, column in {"a": pa.array([None] * 3), "b": pa.array(["x", None]), "c": pa.array([None])}.items():
        pyarrow.parquet.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")
    for size in (1, 2, 4):
        with Loader(Chunks(tmp_path), size) as loader:
            batches = [batch["x"] for batch in loader]
        assert {type(batch) for batch in batches} == {list}
        assert [value for batch in batches for value in batch] == [None, None, None, "x", None, None]


def test_columns_in_another_order_come_in_the_order_of_the_first(tmp_path):
    inner = {"a": 1.0, "b": 2.0}
    pyarrow.parquet.write_table(pa.table({"x": [1, 2, 3], "y": ["a"] * 3, "z": [inner] * 3}), tmp_path / "a.parquet")
    other = pa.array([{"b": 2.0, "a": 1.0}] * 3)
    pyarrow.parquet.write_table(pa.table({"z": other, "y": ["b"] * 3, "x": [4, 5, 6]}), tmp_path / "b.parquet")
    for size, across in itertools.product([1, 2, 3, 6], [True, False]):
        with Loader(Chunks(tmp_path, across_chunks=across), size) as loader:
            batches = list(loader)
        assert {(*batch, *batch["z"]) for batch in batches} == {("x", "y", "z", "a", "b")}
        assert [number for batch in batches for number in batch["x"].tolist()] == [1, 2, 3, 4, 5, 6]


def test_a_loader_that_goes_on_after_files_that_do_not_fit_passes_them_over(tmp_path):
    for name, column in {"a": [1, 2, 3], "b": [0.5] * 3, "c": [4, 5, 6]}.items():
        pyarrow.parquet.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")
    with Loader(Chunks(tmp_path, across_chunks=False, interleave=1), 2) as loader:
        iterator, got = iter(loader), []
        for _ in range(5):
            try:
                got.append(next(iterator)["x"].tolist())
            except ChunkError:
                got.append("error")
    assert got == [[1, 2], [3], "error", [4, 5], [6]]
