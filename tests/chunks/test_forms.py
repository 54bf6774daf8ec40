"""A column is the same in each batch, whatever values that has: its type in the file decides, and where a type has no
place for null, an error says what to pass."""

from __future__ import annotations

import datetime
import decimal
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from stoker import ChunkError, Chunks, Loader, Threads, pad
from tests.chunks.columns import DAY, TOTAL, form, plain, write
from tests.chunks.files import needs_missing_vectors


def every_third(values: list[Any]) -> list[Any]:
    """With None in between, but not in the first file, and nothing else in the one of one row."""
    return [None if (n >= 5 and n % 3 == 0) or n == 12 else value for n, value in enumerate(values)]


def arrays(*, nulls: bool) -> dict[str, pa.Array]:
    """A column of each type, of which all but whole numbers may have nulls."""
    some = every_third if nulls else list
    count = range(TOTAL)
    words = some([f"word {n}" for n in count])
    return {
        "id": pa.array(count, pa.int32()),
        "bool": pa.array([n % 2 == 0 for n in count]),
        "float32": pa.array(some([n / 2 for n in count]), pa.float32()),
        "float16": pa.array(some([np.float16(n) for n in count]), pa.float16()),
        "float64": pa.array(some([n / 2 for n in count])),
        "time": pa.array(some([DAY] * TOTAL), pa.timestamp("us", tz="UTC")),
        "duration": pa.array(some([datetime.timedelta(n) for n in count]), pa.duration("ms")),
        "date": pa.array(some([DAY.date()] * TOTAL)),
        "string": pa.array(words),
        "bytes": pa.array(some([b"%d" % n for n in count])),
        "category": pa.array(words).dictionary_encode(),
        "category of floats": pa.array(some([n / 2 for n in count])).dictionary_encode(),
        "decimal": pa.array(some([decimal.Decimal(n) for n in count])),
        "clock": pa.array(some([datetime.time(n) for n in count])),
        "fixed": pa.array(some([[n, n + 0.5] for n in count]), pa.list_(pa.float32(), 2)),
        "fixed with holes": pa.array([[n, None if nulls else 1.5] for n in count], pa.list_(pa.float64(), 2)),
        "fixed words": pa.array(some([["a", str(n)] for n in count]), pa.list_(pa.string(), 2)),
        "matrix": pa.array(some([[[n, 1], [2, 3]] for n in count]), pa.list_(pa.list_(pa.float32(), 2), 2)),
        "list": pa.array(some([list(range(n % 4)) for n in count]), pa.list_(pa.int64())),
        "list with holes": pa.array([[None if nulls else 0.0] * (n % 3) for n in count], pa.list_(pa.float64())),
        "equal list": pa.array(some([[n, n] for n in count]), pa.large_list(pa.int16())),
        "list of words": pa.array(some([["x"] * (n % 3) for n in count]), pa.list_(pa.string())),
        "list of lists": pa.array(some([[[n], [n, n]] for n in count]), pa.list_(pa.list_(pa.int64()))),
        "list of structs": pa.array(some([[{"a": n}] * (n % 3) for n in count])),
        "struct": pa.array(
            some([{"x": n / 2, "word": str(n), "deep": {"y": [n / 4] * (n % 3)}} for n in count]),
            pa.struct({"x": pa.float64(), "word": pa.string(), "deep": pa.struct({"y": pa.list_(pa.float32())})}),
        ),
    }


FORMS = {
    "id": "int32",
    "bool": "bool",
    "float32": "float32",
    "float16": "float16",
    "float64": "float64",
    "time": "datetime64[us]",
    "duration": "timedelta64[ms]",
    "date": "datetime64[D]",
    "string": "list",
    "bytes": "list",
    "category": "list",
    "category of floats": "float64",
    "decimal": "list",
    "clock": "list",
    "fixed": "float32 (2,)",
    "fixed with holes": "float64 (2,)",
    "fixed words": "list",
    "matrix": "float32 (2, 2)",
    "list": "list of int64",
    "list with holes": "list of float64",
    "equal list": "list of int16",
    "list of words": "list",
    "list of lists": "list",
    "list of structs": "list",
    "struct": {"x": "float64", "word": "list", "deep": {"y": "list of float32"}},
}


def rows_of(batch: dict[str, Any]) -> list[Any]:
    def row(column, n):
        return {key: row(inner, n) for key, inner in column.items()} if isinstance(column, dict) else plain(column[n])

    return [{key: row(column, n) for key, column in batch.items()} for n in range(len(batch["id"]))]


def expected(table: pa.Table) -> list[Any]:
    """A null list of one size is that many nulls, and a null struct has null fields."""
    found = []
    for one in table.to_pylist():
        one["fixed"] = one["fixed"] or [None, None]
        one["matrix"] = one["matrix"] or [[None, None], [None, None]]
        one["struct"] = one["struct"] or {"x": None, "word": None, "deep": {"y": None}}
        found.append({key: plain(value) for key, value in one.items()})
    return found


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_each_type_has_one_form_however_batches_are_cut(tmp_path, kind, nulls, shuffle):
    if nulls and kind == "parquet":
        needs_missing_vectors()
    columns = arrays(nulls=nulls)
    table = pa.table(columns)
    write(tmp_path, table, form=kind)
    due = sorted(map(repr, expected(table)))
    for size, across, interleave in itertools.product([1, 2, 3, 4, 7, 100], [True, False], [1, 3]):
        chunks = Chunks(tmp_path, across_chunks=across, interleave=interleave)
        with Loader(chunks, size, shuffle=shuffle, seed=size) as loader:
            got = []
            for batch in loader:
                assert list(batch) == list(FORMS)
                for name, what in FORMS.items():
                    found = form(batch[name])
                    if str(what).startswith("list of") and found == "list":
                        continue  # all rows of it are null
                    if name == "struct" and found["deep"]["y"] == "list":
                        found["deep"]["y"] = what["deep"]["y"]
                    assert found == what, name
                got += rows_of(batch)
        assert sorted(map(repr, got)) == due


@pytest.mark.parametrize("workers", [2, Threads(2)], ids=repr)
def test_also_from_workers_and_as_tensors(tmp_path, workers):
    torch = pytest.importorskip("torch")
    table = pa.table(
        {name: arrays(nulls=True)[name] for name in ("id", "float32", "list", "string", "struct", "fixed")}
    )
    write(tmp_path, table)
    with Loader(Chunks(tmp_path), 4, workers=workers, to="torch", shuffle=True) as loader:
        for batch in loader:
            assert batch["float32"].dtype == torch.float32
            assert batch["fixed"].shape[1:] == (2,)
            assert batch["struct"]["x"].dtype == torch.float64
            assert {type(row) for row in batch["list"]} <= {torch.Tensor, type(None)}
            assert type(batch["string"]) is list


def test_samples_have_the_same_values_as_batches(tmp_path):
    """One by one, or for a collate of one's own, a null that has no number is None."""
    numbers = every_third(list(range(TOTAL)))
    columns = {"id": range(TOTAL), "int": numbers, "float": numbers, "list": [[number, 1] for number in numbers]}
    types = {"id": pa.int64(), "int": pa.int16(), "float": pa.float32(), "list": pa.list_(pa.int64())}
    write(tmp_path, pa.table(columns, pa.schema(types)))
    with Loader(Chunks(tmp_path), None) as loader:
        samples = list(loader)
    assert [sample["int"] for sample in samples] == numbers
    assert {type(sample["int"]) for sample in samples} == {np.int16, type(None)}
    assert {type(sample["float"]) for sample in samples} == {np.float32}
    assert [plain(sample["list"]) for sample in samples] == columns["list"]
    with Loader(Chunks(tmp_path), 4, collate=lambda rows: [row["int"] for row in rows]) as loader:
        assert [one for batch in loader for one in batch] == numbers


NULLS = {
    "integers": (pa.array(every_third(list(range(TOTAL)))), "int64"),
    "booleans": (pa.array(every_third([True] * TOTAL)), "bool"),
    "fixed lists": (pa.array(every_third([[1, 2]] * TOTAL), pa.list_(pa.int8(), 2)), "int8"),
    "lists": (pa.array([[value] for value in every_third(list(range(TOTAL)))]), "int64"),
    "categories": (pa.array(every_third(list(range(TOTAL)))).dictionary_encode(), "int64"),
}


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_null_among_whole_numbers_is_an_error_that_says_what_to_pass(tmp_path, name, on_error):
    """It is no fault of the file, so it is not left out."""
    if name == "fixed lists":
        needs_missing_vectors()
    column, dtype = NULLS[name]
    write(tmp_path, pa.table({"id": range(TOTAL), "x": column}))
    told = rf"column 'x' of .*2\.parquet has \d+ nulls among .* array of {dtype}.*dtypes=\{{'x': 'float64'\}}.*object"
    with Loader(Chunks(tmp_path, interleave=1), 4, on_error=on_error) as loader, pytest.raises(ChunkError, match=told):
        list(loader)
    with Loader(Chunks(tmp_path, columns=["id"]), 4) as loader:
        assert [number for batch in loader for number in batch["id"].tolist()] == list(range(TOTAL))
    for wanted, what in (("float64", ("float64", "list of float64")), (object, ("list",)), ("float16", None)):
        with Loader(Chunks(tmp_path, dtypes={"x": wanted}), 4) as loader:
            batches = list(loader)
        if what is not None:
            assert {form(batch["x"]).partition(" (")[0] for batch in batches} <= set(what)
        values = [plain(value) for batch in batches for value in batch["x"]]
        assert [value or None for value in values] == [value or None for value in plain_nulls(column, wanted)]


def plain_nulls(column: pa.Array, wanted: Any) -> list[Any]:
    if wanted is object or not pa.types.is_fixed_size_list(column.type):
        return [value if value is None else plain(value) for value in column.to_pylist()]
    return [[None, None] if value is None else value for value in column.to_pylist()]


def test_lists_of_different_lengths_can_be_padded(tmp_path):
    write(tmp_path, pa.table({"x": pa.array([list(range(n % 4)) for n in range(TOTAL)], pa.list_(pa.int64()))}))
    with Loader(Chunks(tmp_path), 4, collate=pad) as loader:
        assert {batch["x"].ndim for batch in loader} == {2}


def test_a_table_of_pandas_with_missing_floats(tmp_path):
    """The ordinary table: pandas writes NaN as null."""
    floats = pa.array(np.array([0.5, np.nan, 1.5] * 10), from_pandas=True)
    assert floats.null_count == 10
    table = pa.table({"x": floats, "n": range(30), "word": ["a", None, "b"] * 10})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    for size in range(1, 31):
        with Loader(Chunks(tmp_path), size, shuffle=True) as loader:
            batches = list(loader)
        assert {tuple(map(form, batch.values())) for batch in batches} == {("float64", "int64", "list")}
        assert sum(int(np.isnan(batch["x"]).sum()) for batch in batches) == 10
