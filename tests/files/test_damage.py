"""A damaged file is an error that says where, never fewer samples."""

from __future__ import annotations

import io
import re
import tarfile

import pyarrow.parquet
import pytest

from stoker.errors import ChunkError
from stoker.sources.files.readers import count_samples, read_chunk
from tests.files.forms import COMPRESSIONS, FORMS, PLAIN_TEXT, expected, npy, plain, rows, tar

SAMPLES = rows(5)
CUTS = 200  # so many of each file are tried at most
ALIASES = {"feather", "ndjson", "json", "tsv"}
CASES = [
    (form, zipped)
    for form in sorted(set(FORMS) - ALIASES)
    for zipped in COMPRESSIONS
    if zipped or form not in PLAIN_TEXT
]


def outcome(path, data):
    """The samples, or None where reading said that the file is damaged."""
    path.write_bytes(data)
    count = attempt(count_samples, path)
    read = attempt(read_chunk, path)
    if read is None:
        return None
    assert count == len(read)
    return plain(read)


def attempt(what, path):
    try:
        return what(str(path))
    except ChunkError:
        return None


def places(data):
    """Every byte of a small file; of a large one as many as there is time for, the first and the last among them."""
    step = max(1, len(data) // CUTS)
    return sorted({*range(0, len(data), step), *range(max(0, len(data) - 20), len(data))})


@pytest.mark.parametrize(("form", "compression"), CASES)
def test_a_file_cut_short_is_never_read_short(tmp_path, form, compression):
    data = COMPRESSIONS[compression](FORMS[form](SAMPLES))
    path = tmp_path / f"a.{form}{compression}"
    whole = expected(form, SAMPLES)
    found = [outcome(path, data[:cut]) for cut in places(data)]
    assert [samples for samples in found if samples not in (None, whole)] == []
    assert None in found
    assert outcome(path, data) == whole


@pytest.mark.parametrize("form", sorted(PLAIN_TEXT - {"csv", "tsv"}))
def test_plain_lines_cut_short_are_the_first_lines_or_an_error(tmp_path, form):
    data = FORMS[form](SAMPLES)
    path = tmp_path / f"a.{form}"
    whole = expected(form, SAMPLES)
    for cut in range(len(data)):
        samples = outcome(path, data[:cut])
        complete = data[:cut].count(b"\n")
        assert samples is None or samples[:complete] == whole[:complete]
        if form != "txt" and cut and data[cut - 1 : cut + 1] not in (b"}\n",) and data[cut - 1 : cut] != b"\n":
            assert samples is None, "half an object is no object"


@pytest.mark.parametrize("compression", [key for key in COMPRESSIONS if key])
def test_a_flipped_bit_is_found_where_there_is_a_checksum(tmp_path, compression):
    data = COMPRESSIONS[compression](FORMS["jsonl"](SAMPLES))
    flips(tmp_path / f"a.jsonl{compression}", data, range(len(data)), expected("jsonl", SAMPLES))


def test_a_flipped_bit_in_an_npz(tmp_path):
    data = FORMS["npz"](SAMPLES)
    flips(tmp_path / "a.npz", data, range(len(data)), expected("npz", SAMPLES))


def test_a_flipped_bit_in_the_header_of_a_member(tmp_path):
    data = FORMS["tar"](SAMPLES)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        headers = [member.offset for member in archive]
    spots = [offset + at for offset in headers for at in range(0, 512, 5)]
    flips(tmp_path / "a.tar", data, spots, expected("tar", SAMPLES))


def test_a_flipped_bit_in_a_page_of_parquet(tmp_path):
    data = FORMS["parquet"](SAMPLES)
    meta = pyarrow.parquet.ParquetFile(io.BytesIO(data)).metadata
    chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
    ends = [(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size for chunk in chunks]
    path = tmp_path / "a.parquet"
    for end in ends:
        path.write_bytes(flipped(data, end - 1))
        with pytest.raises(ChunkError, match="at row group"):
            read_chunk(str(path))


def flips(path, data, spots, whole):
    for spot in spots:
        path.write_bytes(flipped(data, spot))
        try:
            samples = plain(read_chunk(str(path)))
        except ChunkError:
            continue
        assert samples == whole, f"the bit at byte {spot} changed the samples"


def flipped(data, spot):
    return data[:spot] + bytes([data[spot] ^ (1 << spot % 8)]) + data[spot + 1 :]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("form", sorted(set(FORMS) - PLAIN_TEXT - ALIASES))
@pytest.mark.parametrize("garbage", [b"", b"\0" * 2000, b"<html>404</html>" * 100], ids=["empty", "zeros", "html"])
def test_a_file_of_another_kind(tmp_path, form, compression, garbage):
    path = tmp_path / f"a.{form}{compression}"
    for data in (garbage, COMPRESSIONS[compression](garbage)):
        samples = outcome(path, data)
        assert samples is None or (form == "tar" and samples == [] and garbage.startswith(b"\0"))


def test_what_stands_behind_the_end_is_not_passed_over(tmp_path):
    for name, data in {
        "a.tar": FORMS["tar"](SAMPLES) * 2,
        "a.ipc": FORMS["ipc"](SAMPLES) * 2,
        "a.npy": FORMS["npy"](SAMPLES) * 2,
        "a.jsonl.bz2": COMPRESSIONS[".bz2"](b"1\n") + b"BZg9 almost another stream",
        "a.jsonl.xz": COMPRESSIONS[".xz"](b"1\n") + b"\xfd7yXZ",
        "a.jsonl.zst": COMPRESSIONS[".zst"](b"1\n") + b"(\xb5/",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert attempt(read_chunk, tmp_path / name) is None, name


PLACES = {
    "a.jsonl": (b'{"a": 1}\n\n{"a": 2}\n{"a"', "at line 4, byte 19: DecodeError"),
    "b.jsonl": (b'1\n"\xff"\n', "at line 2, byte 2: UnicodeDecodeError"),
    "c.jsonl": (b'{"a": 1} {"a": 2}\n', "at line 1, byte 0: DecodeError"),
    "d.json": (b'{\n  "a": 1\n}\n', "at line 1, byte 0: DecodeError"),
    "a.jsonl.gz": (COMPRESSIONS[".gz"](b"1\n2\n")[:-3], "compressed data ends at byte 21"),
    "b.jsonl.gz": (b"no gzip at all", "between bytes 0 and 14"),
    "a.txt": (b"one\ntw\xff\n", "at line 2, byte 6: UnicodeDecodeError"),
    "a.csv": (b"a,b\n1,2\n3\n", r"Row #3: Expected 2 columns, got 1"),
    "a.tar": (tar([("a.cls", b"1"), ("b.cls", b"x")]), r"at member 'b\.cls', byte 1,024: ValueError"),
    "b.tar": (tar([("a.jpg", b"\xff\xd8 no image")]), r"at member 'a\.jpg', byte 0: UnidentifiedImageError"),
    "c.tar": (tar([("a.cls", b"1"), ("b.bin", b"x" * 600)])[:2000], r"at member 'b\.bin', byte 1,024: ReadError"),
    "d.tar": (tar([("a.cls", b"1"), ("b.cls", b"1")])[:1024], r"at byte 1,024: EOFError"),
    "a.npz": (
        FORMS["npz"](SAMPLES).replace(b"d\0\0\0 ", b"d\0\0\0!", 1),
        r"at array 'word\.npy', byte \d+: BadZipFile",
    ),
    "a.npy": (npy([1, 2, 3])[:-1], "ValueError: .*3"),
    "a.ipc": (FORMS["ipc"](SAMPLES)[:-8], r"at record batch 3, byte [\d,]+: EOFError"),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_error_says_where(tmp_path, name):
    data, told = PLACES[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ChunkError, match=f"^cannot read {re.escape(str(path))}.*{told}") as caught:
        read_chunk(str(path))
    assert caught.value.__cause__ is not None


def test_json_that_is_not_lines_says_what_to_do(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{\n  "a": 1\n}\n')
    with pytest.raises(ChunkError) as caught:
        read_chunk(str(path))
    assert "give read=function" in caught.value.__notes__[0]
