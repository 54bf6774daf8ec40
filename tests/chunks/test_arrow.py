"""to="arrow": what is in the files comes as record batches, nulls and all, and no string is made on the way."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from stoker import ChunkError, Chunks, Loader, Threads
from stoker.sources.files.texts import Texts
from tests.bridges.test_leases import slots
from tests.chunks.files import needs_missing_vectors

SIZES = [5, 0, 7, 1, 10]
TOTAL = sum(SIZES)


def every_third(values):
    """With None in between, but not in the first file."""
    return [None if n >= 5 and n % 3 == 0 else value for n, value in enumerate(values)]


COUNT = range(TOTAL)
TABLE = pa.table(
    {
        "id": pa.array(COUNT, pa.int32()),
        "count": pa.array(every_third(COUNT), pa.int16()),
        "flag": pa.array(every_third([n % 2 == 0 for n in COUNT])),
        "score": pa.array(every_third([float("nan") if n % 4 == 0 else n / 2 for n in COUNT]), pa.float32()),
        "half": pa.array(every_third([np.float16(n) for n in COUNT]), pa.float16()),
        "text": pa.array(every_third(["ä漢\U0001f600"[: n % 4] + str(n) * (n % 3) for n in COUNT])),
        "long text": pa.array(every_third([str(n) for n in COUNT]), pa.large_string()),
        "time": pa.array(every_third(COUNT), pa.timestamp("us")),
        "vector": pa.array(every_third([[n, n + 0.5] for n in COUNT]), pa.list_(pa.float32(), 2)),
        "list": pa.array(every_third([list(range(n % 4)) for n in COUNT]), pa.list_(pa.int32())),
        "list with holes": pa.array([[None] * (n % 2) + [n] for n in COUNT], pa.list_(pa.int64())),
        "words": pa.array(every_third([["x", None][: n % 3] for n in COUNT]), pa.list_(pa.string())),
        "struct": pa.array([{"a": n, "b": every_third(list(map(str, COUNT)))[n]} for n in COUNT]),
        "bytes": pa.array(every_third([b"%d" % n for n in COUNT])),
        "price": pa.array(every_third([Decimal(n) / 4 for n in COUNT]), pa.decimal128(9, 3)),
        "clock": pa.array(every_third([datetime.time(n) for n in COUNT]), pa.time32("ms")),
        "lists of lists": pa.array(every_third([[[n], []] for n in COUNT]), pa.list_(pa.list_(pa.int8()))),
        "fixed words": pa.array(every_third([["a", str(n)] for n in COUNT]), pa.list_(pa.string(), 2)),
        "map": pa.array(every_third([[("a", n)] for n in COUNT]), pa.map_(pa.string(), pa.int32())),
    }
)
KINDS = {"long text": pa.string()}


@pytest.fixture
def folder(tmp_path):
    needs_missing_vectors()
    start = 0
    for number, size in enumerate(SIZES):
        pa.parquet.write_table(TABLE.slice(start, size), tmp_path / f"{number}.parquet", row_group_size=3)
        start += size
    return tmp_path


@pytest.fixture
def no_strings(monkeypatch):
    """Columns of strings may not be opened."""

    def rows(*_):
        raise AssertionError("strings were made")

    monkeypatch.setattr(Texts, "rows", rows)


def told(table) -> list[str]:
    """The rows, in words: NaN is not equal to itself."""
    return list(map(repr, table.to_pylist()))


def expected():
    """A missing list of a fixed size is a row of nulls, as it is an array elsewhere."""
    return [row | {"vector": row["vector"] or [None, None]} for row in TABLE.to_pylist()]


CASES = {
    "in order": {},
    "shuffled": {"shuffle": True},
    "by workers": {"workers": 2},
    "shuffled by threads": {"workers": Threads(2), "shuffle": True},
    "of each file by itself": {"across_chunks": False},
}


@pytest.mark.parametrize("case", CASES)
def test_all_rows_come_with_their_nulls_and_types(folder, case):
    options = dict(CASES[case])
    chunks = Chunks(folder, across_chunks=options.pop("across_chunks", True))
    with Loader(chunks, 4, to="arrow", **options) as loader:
        for _ in range(2):
            batches = list(loader)
            for batch in batches:
                batch.validate(full=True)
                assert [(one.name, one.type) for one in batch.schema] == [
                    (one.name, KINDS.get(one.name, one.type)) for one in TABLE.schema
                ]
            got = [row for batch in batches for row in told(batch)]
            if "shuffle" in options:
                assert Counter(got) == Counter(map(repr, expected()))
            else:
                assert got == list(map(repr, expected()))


@pytest.mark.parametrize("shuffle", [False, True])
def test_no_string_is_made_of_what_parquet_holds(folder, no_strings, shuffle):
    with Loader(Chunks(folder, columns=["id", "text"]), 4, shuffle=shuffle, to="arrow") as loader:
        got = [pair for batch in loader for pair in zip(*batch.to_pydict().values(), strict=True)]
    assert Counter(got) == Counter(zip(COUNT, TABLE["text"].to_pylist(), strict=True))


@pytest.mark.parametrize("shuffle", [False, True])
def test_lines_of_json_become_columns_of_strings(tmp_path, no_strings, shuffle):
    rows = [{"text": "ä" * (n % 3) + str(n), "n": n, "x": n / 2, "ok": n % 2 == 0} for n in range(100)]
    for number in range(4):
        lines = "".join(json.dumps(row) + "\n" for row in rows[25 * number : 25 * (number + 1)])
        (tmp_path / f"{number}.jsonl").write_text(lines)
    schema = pa.schema({"text": pa.string(), "n": pa.int64(), "x": pa.float64(), "ok": pa.bool_()})
    with Loader(Chunks(tmp_path), 16, shuffle=shuffle, to="arrow") as loader:
        batches = list(loader)
    assert all(batch.schema == schema for batch in batches)
    got = [row for batch in batches for row in batch.to_pylist()]
    assert got == rows if not shuffle else Counter(map(str, got)) == Counter(map(str, rows))


def test_batches_lie_in_the_slot_and_hold_it_until_the_last_buffer_is_gone(tmp_path):
    for number in range(8):
        values = np.full((200, 64), number, np.float32)
        texts = [f"{number}" * 100] * 200
        table = {"x": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 64), "text": pa.array(texts)}
        pa.parquet.write_table(pa.table(table), tmp_path / f"{number}.parquet")
    with Loader(Chunks(tmp_path, across_chunks=False), 50, workers=2, prefetch=1, to="arrow") as loader:
        iterator = iter(loader)
        batch = next(iterator)
        mapped = slots()
        numbers, text = batch.column("x").flatten(), batch.column("text")
        assert any(numbers.buffers()[1].address in slot for slot in mapped)
        assert any(text.buffers()[2].address in slot for slot in mapped)
        del batch, numbers
        for _ in range(3):
            for _batch in loader:
                pass
        assert text.to_pylist() == ["0" * 100] * 50
    assert text.to_pylist() == ["0" * 100] * 50


def test_it_resumes_at_any_batch(folder):
    with Loader(Chunks(folder), 4, shuffle=True, to="arrow") as loader:
        whole, states = [], []
        for batch in loader:
            whole.append(told(batch))
            states.append(loader.state_dict())
    for step, state in enumerate(states[:-1], 1):
        with Loader(Chunks(folder), 4, shuffle=True, to="arrow") as loader:
            loader.load_state_dict(state)
            assert [told(batch) for batch in loader] == whole[step:]


def test_a_collate_of_ones_own_gets_samples_and_gives_dicts(folder):
    def collate(samples):
        return {"id": np.array([sample["id"] for sample in samples]), "text": [sample["text"] for sample in samples]}

    with Loader(Chunks(folder), 4, collate=collate, to="arrow") as loader:
        got = [row for batch in loader for row in batch.to_pylist()]
    assert got == [{"id": row["id"], "text": row["text"]} for row in TABLE.to_pylist()]


def test_to_device_gets_the_record_batch(folder):
    with Loader(Chunks(folder, columns=["count"]), 4, to="arrow", to_device=lambda batch: batch.num_rows) as loader:
        assert sum(loader) == TOTAL


def test_a_bare_array_is_an_error_that_says_what_to_do(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10))
    with Loader(Chunks(tmp_path), 4, to="arrow") as loader, pytest.raises(TypeError, match="let the samples be dicts"):
        next(iter(loader))


def test_files_must_agree_as_ever(tmp_path):
    pa.parquet.write_table(pa.table({"x": pa.array([1, None], pa.int32())}), tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"x": pa.array([1, None], pa.int64())}), tmp_path / "b.parquet")
    with Loader(Chunks(tmp_path), 4, to="arrow") as loader, pytest.raises(ChunkError, match=r"int32 .* int64"):
        list(loader)


@pytest.mark.parametrize("to", [None, "arrow"])
def test_strings_that_are_no_utf_8_are_an_error_that_names_the_file(tmp_path, to):
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    pa.parquet.write_table(pa.table({"x": broken}), tmp_path / "a.parquet")
    with (
        Loader(Chunks(tmp_path), 4, to=to) as loader,
        pytest.raises(ChunkError, match=r"a\.parquet.*UnicodeDecodeError"),
    ):
        list(loader)


def test_a_missing_struct_is_one_of_nulls(tmp_path):
    pa.parquet.write_table(pa.table({"x": pa.array([{"a": 1, "b": "c"}, None])}), tmp_path / "a.parquet")
    with Loader(Chunks(tmp_path), 4, to="arrow") as loader:
        assert next(iter(loader)).to_pylist() == [{"x": {"a": 1, "b": "c"}}, {"x": {"a": None, "b": None}}]


def test_samples_with_half_a_pair_of_surrogates_are_an_error_that_names_the_column(tmp_path):
    (tmp_path / "a.x").write_text("")
    chunks = Chunks(tmp_path / "a.x", lambda path: [{"t": "\ud800"}, {"t": "b"}])
    with Loader(chunks, 2) as loader:
        assert next(iter(loader)) == {"t": ["\ud800", "b"]}
    with Loader(chunks, 2, to="arrow") as loader, pytest.raises(TypeError, match=r"batch\['t'\] .* no form"):
        next(iter(loader))
