"""Nothing is lost and nothing moves: the chunks hold the source's records, in order, each as large as was said."""

from __future__ import annotations

import io
import itertools
import tarfile
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from stoker.splitting import manifest
from tests.splitting import sources

LIMITS = st.one_of(
    st.builds(lambda n: {"size": n}, st.integers(1, 200)), st.builds(lambda n: {"count": n}, st.integers(1, 9))
)
FIELDS = st.text(st.sampled_from('ab",\n; \u00e9'), max_size=6)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


def chunks_of(folder: Path, name: str, data: bytes, limit: dict) -> list[bytes]:
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        source = sources.write(Path(inner, name), data)
        chunks = stoker.split(source, Path(inner, "chunks"), **limit)
        assert [chunk.name for chunk in chunks] == sorted(p.name for p in Path(inner, "chunks").glob("[!.]*"))
        held = [sources.content(chunk) for chunk in chunks]
        told = manifest.read(Path(inner, "chunks"))
        assert told.finished
        assert [one.name for one in told.chunks] == [chunk.name for chunk in chunks]
        assert [one.bytes for one in told.chunks] == [len(one) for one in held]
        return held


def grouped(records: list[bytes], limit: dict, around: int = 0) -> list[list[bytes]]:
    """The rule, naively: a chunk ends before the record that would pass the limit."""
    groups: list[list[bytes]] = [[]]
    for record in records:
        group = [*groups[-1], record]
        measured, most = (
            (len(group), limit["count"]) if "count" in limit else (sum(map(len, group)) + around, limit["size"])
        )
        if measured > most and groups[-1]:
            groups.append([record])
        else:
            groups[-1].append(record)
    return groups


@pytest.mark.parametrize("end", sources.COMPRESS)
@given(data=st.lists(st.binary(max_size=30), max_size=20).map(b"\n".join), limit=LIMITS)
@settings(max_examples=40)
def test_lines_of_any_bytes(end, data, limit, folder):
    lines = io.BytesIO(data).readlines()
    assert chunks_of(folder, f"any.txt{end}", data, limit) == list(map(b"".join, grouped(lines, limit)))


@given(data=st.lists(st.sampled_from([b"{}", b"[1, 2]", b"", b" \r", b'"long long"']), max_size=20), limit=LIMITS)
@settings(max_examples=60)
def test_empty_lines_of_json_are_kept_and_not_counted(data, limit, folder):
    held = chunks_of(folder, "any.jsonl", b"\n".join(data), limit)
    assert b"".join(held) == b"\n".join(data)
    if "count" in limit:
        counts = [sum(bool(line.strip()) for line in one.split(b"\n")) for one in held]
        n = sum(bool(line.strip()) for line in data)
        full, rest = divmod(n, limit["count"])
        assert counts == [limit["count"]] * full + [rest] * (rest > 0 or not n)


@pytest.mark.parametrize("end", ["", ".zst"])
@given(rows=st.lists(st.lists(FIELDS, min_size=2, max_size=3), min_size=1, max_size=12), limit=LIMITS)
@settings(max_examples=80)
def test_csv_with_quotes_and_newlines_in_its_fields(end, rows, limit, folder):
    held = chunks_of(folder, f"any.csv{end}", sources.csv_content(rows), limit)
    head, *records = [sources.csv_content([row]) for row in rows]
    assert [one.startswith(head) for one in held] == [True] * len(held)
    assert held == [head + b"".join(group) for group in grouped(records, limit, len(head))]
    assert [row for one in held for row in sources.csv_rows(one)[1:]] == rows[1:]


def test_a_quote_amid_a_field_opens_nothing(folder):
    rows = [b"name,inches\n", b'pipe,5" long\n', b'"a\n""b""\n",1\n', b'say "x,y\n', b'last,"2\n2']
    held = chunks_of(folder, "pipes.csv", b"".join(rows), {"count": 1})
    assert held == [rows[0] + row for row in rows[1:]]
    rows = [b'\xef\xbb\xbf"na\nme"\tk\n', b'a,"b\t1\n', b'c\t"2\n2"\n']
    assert chunks_of(folder, "pipes.tsv", b"".join(rows), {"count": 1}) == [rows[0] + row for row in rows[1:]]


@pytest.mark.parametrize("end", ["", ".gz"])
@given(
    shape=st.lists(st.integers(0, 4), max_size=2).map(tuple),
    n=st.integers(0, 40),
    dtype=st.sampled_from(["u1", "<f4", ">i8", "S3", [("a", "<i2"), ("b", "<f8", (2,))]]),
    limit=st.one_of(LIMITS, st.builds(lambda n: {"size": n}, st.integers(128, 600))),
)
@settings(max_examples=60)
def test_rows_of_npy(end, shape, n, dtype, limit, folder):
    row = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = np.ndarray((n, *shape), dtype, (np.arange(n * row) % 251).astype(np.uint8).tobytes())
    held = chunks_of(folder, f"any.npy{end}", npy_content(array), limit)
    arrays = [np.load(io.BytesIO(one)) for one in held]
    assert {(part.dtype, part.shape[1:]) for part in arrays} == {(array.dtype, shape)}
    assert sum(map(len, arrays)) == n
    assert b"".join(part.tobytes() for part in arrays) == array.tobytes()
    for one, part in zip(held[:-1], arrays[:-1], strict=True):
        if "count" in limit:
            assert len(part) == limit["count"]
        else:
            assert len(part) == 1 or len(one) <= limit["size"] < len(one) + row


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@given(
    names=st.lists(st.sampled_from(["a.txt", "a.x.y", "b.txt", "d/a.txt", "d.e/a", "é" * 80 + ".1", "c" * 150 + ".q"])),
    limit=st.one_of(LIMITS, st.builds(lambda n: {"size": n}, st.integers(1000, 9000))),
)
@settings(max_examples=60)
def test_samples_of_a_tar_stay_together(kind, names, limit, folder):
    members = [(name, name.encode() * 5 * (k % 4)) for k, name in enumerate(names)]
    held = chunks_of(folder, "any.tar", sources.tar_content(members, kind), limit)
    parts = [sources.tar_members(one) for one in held]
    assert [member for part in parts for member in part] == members
    keys = [[key(name) for name, _ in part] for part in parts]
    assert all(before[-1] != after[0] for before, after in itertools.pairwise(keys))
    samples = [1 + sum(a != b for a, b in itertools.pairwise(one)) for one in keys if one]
    if "count" in limit:
        assert samples[:-1] == [limit["count"]] * (len(samples) - 1)
    else:
        assert all(n == 1 or len(one) <= limit["size"] for n, one in zip(samples, held, strict=bool(samples)))


def key(name: str) -> str:
    folder, _, base = name.rpartition("/")
    return f"{folder}/{base.split('.')[0]}"


@given(
    words=st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=60),
    limit=LIMITS,
    group=st.integers(1, 30),
)
@settings(max_examples=40)
def test_rows_of_parquet(words, limit, group, folder):
    table = pa.table(
        {"word": pa.array(words, pa.string()), "kind": pa.array(words, pa.string()).dictionary_encode()}
    ).replace_schema_metadata({"made by": "a test"})
    with tempfile.TemporaryDirectory(dir=folder) as name:
        pq.write_table(table, f"{name}/any.parquet", row_group_size=group, compression="gzip")
        chunks = stoker.split(f"{name}/any.parquet", f"{name}/chunks", **limit)
        parts = [pq.read_table(chunk) for chunk in chunks]
        told = manifest.read(Path(name, "chunks")).chunks
        codecs = {pq.ParquetFile(c).metadata.row_group(0).column(0).compression for c in chunks if words}
    assert pa.concat_tables(parts).to_pydict() == table.to_pydict()
    assert all(part.schema.equals(table.schema, check_metadata=True) for part in parts)
    assert [one.records for one in told] == [len(part) for part in parts]
    assert codecs <= {"GZIP"}
    if "count" in limit:
        assert [len(part) for part in parts[:-1]] == [limit["count"]] * (len(parts) - 1)
    else:
        assert all(one.records == 1 or one.bytes <= limit["size"] for one in told)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl.gz", "a.csv", "a.tar", "a.npy"])
def test_a_source_without_records_makes_one_chunk_without_records(name, tmp_path):
    source = sources.example(tmp_path / name, 0)
    (chunk,) = stoker.split(source, tmp_path / "chunks", count=3)
    assert manifest.read(tmp_path / "chunks").chunks[0].records == 0
    if name != "a.tar":  # whose padding at the end is shorter
        assert sources.content(chunk) == sources.content(source)


def test_a_record_that_is_too_long_makes_a_chunk_by_itself(folder):
    data = [b"a\n", b"b\n", b"l" * 5_000_000 + b"\n", b"c\n"]
    assert chunks_of(folder, "long.txt.zst", b"".join(data), {"size": 10}) == [b"a\nb\n", data[2], b"c\n"]


def test_all_frames_of_a_zst_are_read(tmp_path):
    frames = [zstandard.ZstdCompressor().compress(b"%d\n" % k) for k in range(5)]
    (tmp_path / "frames.txt.zst").write_bytes(b"".join(frames))
    chunks = stoker.split(tmp_path / "frames.txt.zst", tmp_path / "chunks", count=2)
    assert [sources.content(chunk) for chunk in chunks] == [b"0\n1\n", b"2\n3\n", b"4\n"]


def test_names_keep_the_endings_as_they_are_written_and_are_never_hidden(tmp_path):
    (tmp_path / ".big.v2.TXT").write_text("a\nb\n")
    chunks = stoker.split(tmp_path / ".big.v2.TXT", tmp_path / "chunks", count=1)
    assert [chunk.name for chunk in chunks] == ["big.v2-00000.TXT", "big.v2-00001.TXT"]


def test_a_url_is_streamed(tmp_path):
    import fsspec

    with fsspec.open("memory://far/big.jsonl.gz", "wb") as file:
        file.write(sources.COMPRESS[".gz"](b"{}\n" * 10))
    seen = []
    chunks = stoker.split("memory://far/big.jsonl.gz", tmp_path, count=4, on_progress=lambda *told: seen.append(told))
    assert [sources.content(chunk) for chunk in chunks] == [b"{}\n" * 4, b"{}\n" * 4, b"{}\n" * 2]
    assert chunks == stoker.split("memory://far/big.jsonl.gz", tmp_path, count=4)
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_file_within_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("in/a.csv", "head\n1\n2\n3\n")
    chunks = stoker.split(f"zip://in/a.csv::{tmp_path}/all.zip", tmp_path / "chunks", count=2)
    assert [(chunk.name, chunk.read_text()) for chunk in chunks] == [
        ("a-00000.csv", "head\n1\n2\n"),
        ("a-00001.csv", "head\n3\n"),
    ]


@pytest.mark.parametrize("name", ["big.txt", "big.jsonl.gz", "big.csv", "big.npy", "big.tar"])
def test_memory_does_not_grow_with_the_file(name, tmp_path):
    """A chunk of some 20 MB: held is a few buffers of 1 MB, and what the compression needs."""
    row = np.zeros(1000, np.uint8)
    content = {
        "big.npy": lambda: npy_content(np.tile(row, (20_000, 1))),
        "big.tar": lambda: sources.tar_content([(f"{k}.bin", row.tobytes()) for k in range(13_000)]),
    }.get(name, lambda: letters(20_000).tobytes())()
    source = sources.write(tmp_path / name, content)
    tracemalloc.start()
    try:
        stoker.split(source, tmp_path / "chunks", size="1GB")
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


def letters(n: int) -> np.ndarray:
    """Lines of a thousand bytes that are hard to compress: of a million equal ones, a block would become 100 MB."""
    lines = np.random.default_rng(0).integers(97, 122, (n, 1000), np.uint8)
    lines[:, -1] = ord("\n")
    return lines


def npy_content(array: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


@pytest.mark.parametrize("name", ["big.jsonl", "big.txt.xz", "big.npy", "big.parquet", "big.tar"])
def test_progress_rises_to_the_size_of_the_source(name, tmp_path):
    source = sources.example(tmp_path / name)
    seen = []
    stoker.split(source, tmp_path / "chunks", count=7, on_progress=lambda *told: seen.append(told))
    size = source.stat().st_size
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {size}
    assert seen[-1][0] == size


def test_the_manifest_is_plain_json(tmp_path):
    stoker.split(sources.example(tmp_path / "big.csv.gz", 10), tmp_path / "chunks", count=4)
    told = msgspec.json.decode((tmp_path / "chunks" / ".split.json").read_bytes())
    assert [(chunk["name"], chunk["records"]) for chunk in told["chunks"]] == [
        ("big-00000.csv.gz", 4),
        ("big-00001.csv.gz", 4),
        ("big-00002.csv.gz", 2),
    ]
