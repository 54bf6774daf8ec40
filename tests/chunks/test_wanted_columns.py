"""Which columns are wanted, and what they are to be: ``columns=`` and ``dtypes=``."""

from __future__ import annotations

import json
import math
import re
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from stoker import ChunkError, Chunks, CollateError, Loader
from tests.chunks.columns import TOTAL, plain, write


class TestColumns:
    """Which columns are wanted."""

    @pytest.fixture
    def folder(self, tmp_path):
        return write(tmp_path, pa.table({"a": range(TOTAL), "b": [0.5] * TOTAL, "c": [{"d": 1}] * TOTAL}))

    def test_only_those_are_read_in_the_order_given(self, folder):
        with Loader(Chunks(folder, columns=["c", "a"]), 4) as loader:
            assert [list(batch) for batch in loader] == [["c", "a"]] * 6

    @pytest.mark.parametrize("options", [{"columns": ["a", "zz"]}, {"dtypes": {"zz": int}}, {"dtypes": {"c.zz": int}}])
    def test_one_that_a_file_does_not_have_is_an_error_that_names_both(self, folder, options):
        name = "c.zz" if "c.zz" in options.get("dtypes", {}) else "zz"
        with Loader(Chunks(folder, **options), 4) as loader:
            with pytest.raises(ChunkError, match=rf"cannot read .*\.parquet: ValueError: there is no column '{name}'"):
                list(loader)

    def test_a_file_that_lacks_one_can_be_left_out(self, folder):
        pyarrow.parquet.write_table(pa.table({"b": [1.0]}), folder / "a.parquet")
        with Loader(Chunks(folder, columns=["a"], interleave=1), 4, on_error="skip", shuffle=True) as loader:
            assert sorted(number for batch in loader for number in batch["a"].tolist()) == list(range(TOTAL))

    def test_files_with_other_columns_are_an_error_that_names_them(self, folder):
        pyarrow.parquet.write_table(pa.table({"a": [1], "more": [1.0]}), folder / "x.parquet")
        told = r"'a', 'b', 'c.d' in .*\.parquet, 'a', 'more' in .*x\.parquet: pass Chunks\(\.\.\., columns="
        for interleave in (1, 9):
            with Loader(Chunks(folder, interleave=interleave), 4) as loader, pytest.raises(ChunkError, match=told):
                list(loader)
        with Loader(Chunks(folder, columns=["a"]), 4) as loader:
            assert sum(len(batch["a"]) for batch in loader) == TOTAL + 1

    @pytest.mark.parametrize(
        ("form", "data"),
        [
            ("jsonl", b'{"a": 1, "b": 2}\n{"a": 3, "b": null}\n'),
            ("csv", b"a,b\n1,2\n3,\n"),
            ("tsv", b"b\ta\n2\t1\n\t3\n"),
        ],
    )
    def test_of_other_forms(self, tmp_path, form, data):
        (tmp_path / f"x.{form}").write_bytes(data)
        for size in (1, 2):
            with Loader(Chunks(tmp_path, columns=["a"]), size) as loader:
                assert [batch["a"].tolist() for batch in loader] == ([[1], [3]] if size == 1 else [[1, 3]])
            with Loader(Chunks(tmp_path, columns=["b", "a"], dtypes={"b": "float32"}), size) as loader:
                batches = list(loader)
            assert [list(batch) for batch in batches] == [["b", "a"]] * len(batches)
            assert {str(batch["b"].dtype) for batch in batches} == {"float32"}
            assert [plain(value) for batch in batches for value in batch["b"]] == [2.0, None]
        with Loader(Chunks(tmp_path, columns=["a", "zz"]), 1) as loader:
            with pytest.raises(ChunkError, match=rf"x\.{form}.*zz"):
                list(loader)

    def test_of_arrays(self, tmp_path):
        np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.arange(6).reshape(3, 2))
        with Loader(Chunks(tmp_path, columns=["b"], dtypes={"b": "float32"}), 2) as loader:
            assert [(list(batch), str(batch["b"].dtype), batch["b"].shape) for batch in loader] == [
                (["b"], "float32", (2, 2)),
                (["b"], "float32", (1, 2)),
            ]

    def test_of_a_reader_of_ones_own(self, tmp_path):
        (tmp_path / "x.dat").touch()
        given = [{"a": [1, None], "b": ["x", "y"]}, [{"a": 1, "b": 2}, {"a": None, "b": 2}]]
        for samples in given:
            with Loader(Chunks(tmp_path, lambda path: samples, columns=["a"], dtypes={"a": "f4"}), 2) as loader:  # noqa: B023
                (batch,) = loader
            assert list(batch) == ["a"]
            np.testing.assert_array_equal(batch["a"], np.array([1, np.nan], np.float32))

    @pytest.mark.parametrize(
        ("options", "error", "told"),
        [
            ({"columns": "a"}, TypeError, "columns='a'.*: pass a list of names"),
            ({"columns": [1]}, TypeError, "pass a list of names"),
            ({"columns": 3}, TypeError, "pass a list of names"),
            ({"columns": []}, ValueError, "pass one name or more"),
            ({"columns": ["a", "a"]}, ValueError, "each once"),
            ({"dtypes": ["a"]}, TypeError, "pass a dict"),
            ({"dtypes": {"a": "no such"}}, TypeError, "'a': 'no such'.*is not a dtype"),
            ({"dtypes": {"a": complex}}, TypeError, "pass a dtype of numbers or times"),
            ({"columns": ["a"], "dtypes": {"b": int}}, ValueError, "'b', which is not among columns"),
        ],
    )
    def test_what_cannot_be_wanted(self, folder, options, error, told):
        with pytest.raises(error, match=told):
            Chunks(folder, **options)


class TestDtypes:
    """What columns are to be."""

    @pytest.fixture
    def folder(self, tmp_path):
        lists = [[n, n + 1, n + 2, n + 3] for n in range(TOTAL)]
        table = {
            "big": [2**40] * TOTAL,
            "list": lists,
            "half": [0.5] * TOTAL,
            "struct": [{"n": 1}, {"n": None}] * 11 + [None],
        }
        return write(tmp_path, pa.table(table))

    @pytest.mark.parametrize("shape", [4, (2, 2)])
    def test_lists_that_are_said_to_be_of_one_length_are_an_array(self, folder, shape):
        for size in (1, 3, 30):
            with Loader(Chunks(folder, columns=["list"], dtypes={"list": ("int32", shape)}), size) as loader:
                batches = [batch["list"] for batch in loader]
            shape_of_rows = (shape,) if isinstance(shape, int) else shape
            assert {(str(batch.dtype), batch.shape[1:]) for batch in batches} == {("int32", shape_of_rows)}
            np.testing.assert_array_equal(
                np.concatenate(batches)[:, ..., -1].reshape(TOTAL, -1)[:, -1], np.arange(3, TOTAL + 3)
            )

    @pytest.mark.parametrize(
        ("dtypes", "told"),
        [
            ({"list": ("int64", 3)}, "column 'list' is to be .*3.* a list of 4 values in row 0"),
            ({"big": "int32"}, "column 'big' is to be int32 and is int64"),
            ({"half": "int64"}, "column 'half' is to be int64 and is double"),
            ({"struct": "int64"}, r"a struct: name its fields, as in 'struct\.n'"),
            ({"half": "M8[us]"}, "column 'half' is to be"),
        ],
    )
    def test_values_are_never_changed_to_fit(self, folder, dtypes, told):
        with Loader(Chunks(folder, dtypes=dtypes), 4) as loader, pytest.raises(ChunkError, match=told):
            list(loader)

    @pytest.mark.parametrize("form", ["parquet", "jsonl", "columns"])
    @pytest.mark.parametrize(
        ("value", "dtype"),
        [
            (2, "bool"),
            (70_000, "float16"),
            (1e300, "float32"),
            (date(9999, 1, 1), "M8[ns]"),
            (timedelta(days=200_000), "m8[ns]"),
        ],
    )
    def test_nor_where_the_dtype_ends(self, tmp_path, form, value, dtype):
        if form == "parquet":
            chunks = Chunks(write(tmp_path, pa.table({"x": [value, None]})), dtypes={"x": dtype})
        elif form == "columns":
            (tmp_path / "a.dat").touch()
            chunks = Chunks(tmp_path, lambda path: {"x": np.array([value])}, dtypes={"x": dtype})
        else:
            if isinstance(value, timedelta):
                pytest.skip("JSON has none")
            (tmp_path / "a.jsonl").write_text(json.dumps({"x": value}, default=str) + "\n")
            chunks = Chunks(tmp_path, dtypes={"x": dtype})
        told = re.escape(f"column 'x' is to be {np.dtype(dtype).name}")
        with Loader(chunks, 2) as loader, pytest.raises(ChunkError, match=told):
            list(loader)

    def test_infinity_stays_what_it_is(self, tmp_path):
        folder = write(tmp_path, pa.table({"x": [math.inf, -math.inf, None]}))
        with Loader(Chunks(folder, dtypes={"x": "float16"}), 3) as loader:
            np.testing.assert_array_equal(next(iter(loader))["x"], np.array([np.inf, -np.inf, np.nan], np.float16))

    def test_short_floats_in_csv(self, tmp_path):
        (tmp_path / "a.csv").write_text("x,y\n1.5,1\n,2\n")
        with Loader(Chunks(tmp_path, dtypes={"x": "float16"}), 2) as loader:
            (batch,) = loader
        np.testing.assert_array_equal(batch["x"], np.array([1.5, np.nan], np.float16))
        assert batch["x"].dtype == np.float16

    def test_of_the_fields_of_a_struct(self, folder):
        with Loader(Chunks(folder, columns=["struct"], dtypes={"struct.n": "float32"}), 5) as loader:
            values = np.concatenate([batch["struct"]["n"] for batch in loader])
        assert plain(values) == [1, None] * 11 + [None]

    def test_a_struct_as_objects(self, folder):
        with Loader(Chunks(folder, columns=["struct"], dtypes={"struct": object}), 5) as loader:
            assert [row for batch in loader for row in batch["struct"]] == [{"n": 1}, {"n": None}] * 11 + [None]

    def test_csv_is_read_as_them_and_not_guessed(self, tmp_path):
        (tmp_path / "a.csv").write_text("code,x\n007,1\n")
        (tmp_path / "b.csv").write_text("code,x\nabc,0.5\n")
        with Loader(Chunks(tmp_path), 2) as loader, pytest.raises(ChunkError, match=r"code.* is an array of int64"):
            list(loader)
        with Loader(Chunks(tmp_path, dtypes={"code": str, "x": "float64"}), 2) as loader:
            (batch,) = loader
        assert batch["code"] == ["007", "abc"]
        assert batch["x"].tolist() == [1.0, 0.5]

    def test_json_lines_have_the_form_of_their_values_unless_it_is_said(self, tmp_path):
        lines = [{"x": 1, "t": [1, 2]}, {"x": 0.5, "t": [3, 4]}, {"x": None, "t": [5, 6]}, {"x": 2, "t": [7, 8]}]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with Loader(Chunks(tmp_path), 4) as loader, pytest.raises(CollateError) as caught:
            list(loader)
        assert any("dtypes=" in note for note in caught.value.__notes__)
        for size in (1, 2, 3, 4):
            with Loader(Chunks(tmp_path, dtypes={"x": "float64", "t": "int32"}), size) as loader:
                batches = list(loader)
            assert {(str(b["x"].dtype), str(b["t"].dtype), b["t"].shape[1:]) for b in batches} == {
                ("float64", "int32", (2,))
            }
            assert [plain(value) for batch in batches for value in batch["x"]] == [1, 0.5, None, 2]
