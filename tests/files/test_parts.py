"""Parts of a file: together they hold what the file holds, in its order, wherever it is cut."""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.errors import ChunkError
from stoker.sources.files.cutting import Cutting, Survey
from stoker.sources.files.listing import list_files
from stoker.sources.files.open_files import OpenFiles
from stoker.sources.files.parts import Limits, Part, Parts, parts_of
from stoker.sources.files.readers import count_part, read_chunk, read_part
from stoker.sources.files.selection import Selection
from tests.files.forms import plain

SIZES = [1, 2, 7, 30, 100, 1000, 10**6]


def cut_into(path: Path, size: int, multiple: int = 1) -> Parts:
    """The parts of one file, of about so many bytes."""
    listing = list_files(path)
    cutting = Cutting(Limits(part=size, whole=0), multiple=multiple)
    found = cutting.by_name(str(path), int(listing.sizes[0]))
    if found is None:
        (found,) = Survey(cutting)([(str(path), int(listing.sizes[0]))])
    return parts_of(listing, {} if isinstance(found, str) else {0: found})


def whole_of(path: Path, **options) -> list[str]:
    """Each sample of a file, as text: NaN is no NaN, and the same text."""
    return list(map(repr, plain(read_chunk(str(path), **options))))


def read_all(parts: Parts, **options) -> list[str]:
    """Each sample of all parts, as text."""
    files = OpenFiles(4)
    samples = [plain(read_part(parts[number], files=files, **options)) for number in range(len(parts))]
    found = [list(map(repr, some)) for some in samples]
    counts = [rows if rows >= 0 else count_part(parts[number]) for number, rows in enumerate(parts.rows.tolist())]
    assert counts == list(map(len, found))
    return list(itertools.chain.from_iterable(found))


lines = st.lists(
    st.tuples(st.text("aé世😀 \t\x0b\u2028", max_size=12), st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])),
    max_size=12,
)


@given(lines, st.sampled_from(["", "end", "é", "\r", " "]), st.booleans(), st.integers(1, 40))
def test_text_has_each_line_once(content, last, bom, size):
    text = ("\ufeff" if bom else "") + "".join(line + end for line, end in content) + last
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes(text.encode())
        assert read_all(cut_into(path, size)) == whole_of(path)


@given(lines, st.sampled_from(["", "7", '"é"', "\r\n", "  "]), st.integers(1, 40))
def test_json_has_each_value_once(content, last, size):
    text = "".join(json.dumps(line, ensure_ascii=False) + end for line, end in content) + last
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_bytes(text.encode())
        assert read_all(cut_into(path, size)) == whole_of(path)


def table(rows: int) -> pa.Table:
    return pa.table(
        {
            "number": pa.array(range(rows)),
            "word": pa.array([f"wörd {i}" * (i % 3) for i in range(rows)]),
            "kind": pa.array([f"kind {i % 3}" for i in range(rows)]).dictionary_encode(),
            "tokens": pa.array([list(range(i % 4)) for i in range(rows)], pa.list_(pa.int64())),
            "pair": pa.array([{"a": i, "b": None if i % 5 == 0 else str(i)} for i in range(rows)]),
            "score": pa.array([None if i % 7 == 0 else i / 2 for i in range(rows)]),
        }
    )


def write_parquet(path: Path, content: pa.Table, rows: int, compression: str) -> None:
    pyarrow.parquet.write_table(content, path, row_group_size=rows, compression=compression, data_page_size=64)


def write_arrow(path: Path, content: pa.Table, rows: int, compression: str | None) -> None:
    new = pyarrow.ipc.new_stream if path.suffix == ".ipc" else pyarrow.ipc.new_file
    with new(path, content.schema, options=pyarrow.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(content, max_chunksize=rows)


@given(st.integers(1, 120), st.sampled_from([1, 8, 50, 1000]), st.sampled_from([30, 200, 2000]), st.integers(1, 9))
@settings(max_examples=40)
def test_parquet_has_each_row_once_in_any_order_of_parts(rows, group, size, multiple):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        write_parquet(path, table(rows), group, "snappy")
        whole = whole_of(path)
        parts = cut_into(path, size, multiple)
        assert read_all(parts) == whole
        assert all(int(n) % multiple == 0 for n in parts.rows[:-1])
        files = OpenFiles(3)  # as a shuffled epoch may have it, though that costs more
        backwards = [plain(read_part(parts[number], files=files)) for number in reversed(range(len(parts)))]
        assert list(map(repr, itertools.chain.from_iterable(reversed(backwards)))) == whole


@pytest.mark.parametrize("name", ["a.arrow", pytest.param("a.feather", marks=pytest.mark.exhaustive), "a.ipc"])
@pytest.mark.parametrize("compression", [None, "lz4", pytest.param("zstd", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("rows", [1, 13, 1000])
def test_arrow_has_each_row_once(tmp_path, name, compression, rows):
    content = table(60).drop(["kind"]) if name == "a.ipc" else table(60)
    write_arrow(tmp_path / name, content, rows, compression)
    whole = whole_of(tmp_path / name)
    for size, multiple in itertools.product(SIZES, (1, 7)):
        parts = cut_into(tmp_path / name, size, multiple)
        assert parts.cuts
        assert read_all(parts) == whole


def test_a_stream_with_dictionaries_is_read_as_a_whole(tmp_path):
    write_arrow(tmp_path / "a.ipc", table(30), 7, None)
    parts = cut_into(tmp_path / "a.ipc", 30)
    assert not parts.cuts
    assert read_all(parts) == whole_of(tmp_path / "a.ipc")


def test_record_batches_without_rows(tmp_path):
    empty, full = table(0).drop(["kind"]), table(5).drop(["kind"])
    for name, new in (("a.arrow", pyarrow.ipc.new_file), ("a.ipc", pyarrow.ipc.new_stream)):
        with new(tmp_path / name, full.schema) as writer:
            for batch in (*empty.to_batches(), pa.RecordBatch.from_pylist([], full.schema), *full.to_batches()) * 2:
                writer.write_batch(batch)
        whole = whole_of(tmp_path / name)
        assert len(whole) == 10
        assert all(read_all(cut_into(tmp_path / name, size)) == whole for size in SIZES)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(60).reshape(20, 3),
        np.arange(7),
        np.zeros((9, 2, 0)),
        np.array([("a", 1.5)] * 11, [("word", "U3"), ("number", ">f4")]),
        np.array([b"x", b"long"] * 5),
        np.arange(8).reshape(8, 1, 1)[::2],
    ],
    ids=lambda array: f"{array.dtype.kind}{array.shape}",
)
def test_npy_has_each_row_once(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    for size, multiple in itertools.product(SIZES, (1, 4)):
        assert read_all(cut_into(tmp_path / "a.npy", size, multiple)) == whole_of(tmp_path / "a.npy")


def test_npy_by_columns_is_read_as_a_whole(tmp_path):
    array = np.asfortranarray(np.arange(12).reshape(4, 3))
    np.save(tmp_path / "a.npy", array)
    parts = cut_into(tmp_path / "a.npy", 24)
    assert not parts.cuts
    assert plain(read_part(parts[0], files=OpenFiles(1))) == array.tolist()


def test_columns_and_dtypes_hold_for_parts(tmp_path):
    selection = Selection(("score", "number"))
    write_parquet(tmp_path / "a.parquet", table(50), 20, "zstd")
    write_arrow(tmp_path / "a.arrow", table(50), 20, None)
    for path in sorted(tmp_path.iterdir()):
        assert read_all(cut_into(path, 100), selection=selection) == whole_of(path, selection=selection)
        with pytest.raises(ChunkError, match="no column 'other'"):
            read_part(cut_into(path, 100)[0], files=OpenFiles(1), selection=Selection(("other",)))


def test_slices_of_a_row_group_are_a_strand_and_small_row_groups_are_read_together(tmp_path):
    write_parquet(tmp_path / "large.parquet", table(1000), 500, "none")
    write_parquet(tmp_path / "small.parquet", table(100), 1, "none")
    large, small = cut_into(tmp_path / "large.parquet", 20_000), cut_into(tmp_path / "small.parquet", 20_000)
    assert len(large) > 4
    assert sorted(set(large.strands)) == [0, 1]
    assert int(large.rows[large.strands == 0].sum()) == 500
    assert 1 < len(small) < 20
    assert small.strands.tolist() == list(range(len(small)))


def test_a_slice_goes_on_where_the_last_one_ended(tmp_path, monkeypatch):
    """What a large row group costs: pages are decoded once by whoever reads its slices in their order."""
    from stoker.sources.files import row_groups

    opened: list[Part] = []
    rows = row_groups.ParquetRows

    def counted(part, *arguments):
        opened.append(part)
        return rows(part, *arguments)

    write_parquet(tmp_path / "a.parquet", table(400), 200, "none")
    parts = cut_into(tmp_path / "a.parquet", 2000)
    firsts = np.flatnonzero(np.diff(parts.strands, prepend=-1)).tolist()
    assert len(firsts) == 2
    abreast = [number for pair in zip(range(firsts[1]), range(firsts[1], len(parts)), strict=False) for number in pair]
    monkeypatch.setattr("stoker.sources.files.tables.ParquetRows", counted)
    monkeypatch.setattr(row_groups, "ParquetRows", counted)
    files = OpenFiles(2)
    for number in abreast:
        read_part(parts[number], files=files)
    assert len(opened) == 2


def test_a_file_that_has_become_shorter_is_an_error(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("line\n" * 100)
    parts = cut_into(path, 100)
    path.write_text("line\n" * 50)
    assert len(read_part(parts[0], files=OpenFiles(1))) == 20
    with pytest.raises(ChunkError, match=r"a\.txt at bytes 300 to 400.*had 500 when it was listed"):
        read_part(parts[3], files=OpenFiles(1))


def test_an_error_names_the_byte_in_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n' * 10 + "{broken}\n" + '{"a": 1}\n' * 10)
    parts = cut_into(path, 50)
    with pytest.raises(ChunkError, match=r"a\.jsonl at byte 90: "):
        read_part(parts[1], files=OpenFiles(1))
    text = tmp_path / "a.txt"
    text.write_bytes(b"line\n" * 10 + b"\xff\n")
    with pytest.raises(ChunkError, match=r"a\.txt at byte 50: "):
        read_part(cut_into(text, 30)[1], files=OpenFiles(1))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.ipc", "a.npy"])
def test_what_cannot_be_surveyed_says_so_when_it_is_read(tmp_path, name):
    """Never by reading all of a file that is large."""
    (tmp_path / name).write_bytes(b"nothing of the kind " * 10)
    parts = cut_into(tmp_path / name, 30)
    assert [int(parts.begins[0]), int(parts.ends[0])] == [0, 0]
    with pytest.raises(ChunkError, match=name):
        read_part(parts[0], files=OpenFiles(1))


@pytest.mark.parametrize("form", ["arrow", "ipc", "parquet"])
def test_a_damaged_table_is_an_error_or_the_same_rows(tmp_path, form):
    path = tmp_path / f"a.{form}"
    content = table(40).drop(["kind"])
    if form == "parquet":
        pyarrow.parquet.write_table(content, path, row_group_size=20, write_page_checksum=True)
    else:
        write_arrow(path, content, 20, None)
    data = path.read_bytes()
    for end in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:end])
        parts = cut_into(path, 300)
        with pytest.raises(ChunkError):
            read_all(parts)


def test_a_million_small_files_are_cut_without_looking_at_them(tmp_path):
    """Contract: files up to the limit are one part each, in their order, and nobody opens them."""
    from stoker.sources.files.listing import Listing

    count = 10**6
    ends = np.arange(1, count + 1) * 8
    listing = Listing(b"x/a.json" * count, ends, np.full(count, 2), np.full(count, 8 << 20), np.zeros(count, np.int64))
    cutting = Cutting(Limits())
    assert cutting.large_files(listing) == []
    parts = parts_of(listing, {})
    assert len(parts) == count
    assert parts[7] == Part(7, "x/a.json", size=8 << 20)
    assert parts.fingerprint() == ""
