"""What cannot work is said at once, and nothing is written."""

from __future__ import annotations

import os

import numpy as np
import pytest

import stoker
from stoker.splitting import manifest
from stoker.splitting.folder import held
from stoker.splitting.limit import nbytes
from tests.splitting import sources


@pytest.fixture
def source(tmp_path):
    return sources.example(tmp_path / "big.jsonl", 10)


@pytest.mark.parametrize(
    ("limit", "error", "why"),
    [
        ({}, ValueError, "neither"),
        ({"size": 1, "count": 1}, ValueError, "both"),
        ({"size": 0}, ValueError, "size=0"),
        ({"size": -5}, ValueError, "size=-5"),
        ({"size": "0 MB"}, ValueError, "size=0"),
        ({"size": "0.1"}, ValueError, "size=0"),
        ({"count": 0}, ValueError, "count=0"),
        ({"size": "64 MX"}, ValueError, "64 MX"),
        ({"size": "64 ib"}, ValueError, "64 ib"),
        ({"size": "MB"}, ValueError, "MB"),
        ({"size": ""}, ValueError, "is no size"),
        ({"size": 1.5}, TypeError, "float"),
        ({"size": True}, TypeError, "bool"),
        ({"count": "5"}, TypeError, "str"),
        ({"count": 5.0}, TypeError, "float"),
    ],
)
def test_bad_limits(limit, error, why, source, tmp_path):
    with pytest.raises(error, match=why):
        stoker.split(source, tmp_path / "chunks", **limit)
    assert not (tmp_path / "chunks").exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [("7", 7), ("500k", 500_000), ("64MB", 64_000_000), ("1.5 GiB", 3 << 29), ("2kib", 2048), (" 1 Tb ", 10**12)],
)
def test_sizes_as_they_are_written(text, size):
    assert nbytes(text) == size


def test_numbers_of_numpy_are_numbers(source, tmp_path):
    assert len(stoker.split(source, tmp_path / "chunks", count=np.int64(5))) == 2


@pytest.mark.parametrize("name", ["big.bin", "big", "big.gz", ".jsonl", "big.parquet.gz", "big.zip"])
def test_an_unknown_ending(name, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match="ending that split does not know"):
        stoker.split(tmp_path / name, tmp_path / "chunks", count=5)


def test_a_source_that_is_no_file(tmp_path):
    (tmp_path / "folder.txt").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    for name, why in (("folder.txt", "is a folder"), ("none.txt", "does not exist"), ("pipe.txt", "no regular file")):
        with pytest.raises(ValueError, match=why):
            stoker.split(tmp_path / name, tmp_path / "chunks", count=5)
    for url, why in (("memory://none/a.txt", "does not exist"), (f"file://{tmp_path}/folder.txt", "is a folder")):
        with pytest.raises(ValueError, match=why):
            stoker.split(url, tmp_path / "chunks", count=5)
    with pytest.raises(TypeError):
        stoker.split(7, tmp_path / "chunks", count=5)
    assert not (tmp_path / "chunks").exists()


@pytest.mark.parametrize("array", [np.array(5), np.array([None, {}]), np.ones((3, 4), order="F")])
def test_arrays_that_have_no_rows_to_copy(array, tmp_path):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match="lie row by row"):
        stoker.split(tmp_path / "a.npy", tmp_path / "chunks", count=5)


def test_a_folder_that_cannot_be_used(source, tmp_path):
    (tmp_path / "file").touch()
    for into in ("file", "file/within"):
        with pytest.raises(ValueError, match="is a file"):
            stoker.split(source, tmp_path / into, count=5)
    with pytest.raises(ValueError, match="folder of its own"):
        stoker.split(source, tmp_path, count=5)


def test_a_folder_of_another_split(source, tmp_path):
    into = tmp_path / "chunks"
    stoker.split(source, into, count=5)
    with pytest.raises(ValueError, match="begun with count=5, not with count=6: remove the folder"):
        stoker.split(source, into, count=6)
    with pytest.raises(ValueError, match="begun with count=5, not with size=6: remove the folder"):
        stoker.split(source, into, size=6)
    with pytest.raises(ValueError, match=r"chunks of big.jsonl, not of other.jsonl: remove the folder"):
        stoker.split(sources.example(tmp_path / "other.jsonl", 10), into, count=5)
    os.utime(source, (5, 5))
    with pytest.raises(ValueError, match=r"has changed since .* remove the folder"):
        stoker.split(source, into, count=5)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe", b'{"stoker_split": 1}', b'{"chunks": 3}'])
def test_a_damaged_manifest(damage, source, tmp_path):
    into = tmp_path / "chunks"
    stoker.split(source, into, count=5)
    (into / manifest.NAME).write_bytes(damage)
    with pytest.raises(ValueError, match=r"\.split\.json is damaged .* remove the folder"):
        stoker.split(source, into, count=5)


def test_a_manifest_of_another_format(source, tmp_path):
    into = tmp_path / "chunks"
    stoker.split(source, into, count=5)
    path = into / manifest.NAME
    path.write_bytes(path.read_bytes().replace(b'"stoker_split": 1', b'"stoker_split": 2'))
    with pytest.raises(ValueError, match="format 2, not 1: remove the folder"):
        stoker.split(source, into, count=5)


def test_a_chunk_that_was_removed(source, tmp_path):
    chunks = stoker.split(source, tmp_path / "chunks", count=5)
    chunks[1].unlink()
    with pytest.raises(ValueError, match=r"lacks big-00001.jsonl, .* remove the folder"):
        stoker.split(source, tmp_path / "chunks", count=5)


def test_only_one_process_splits_into_a_folder(source, tmp_path):
    with held(tmp_path / "chunks"):
        with pytest.raises(ValueError, match="another process"):
            stoker.split(source, tmp_path / "chunks", count=5)
    assert len(stoker.split(source, tmp_path / "chunks", count=5)) == 2


def test_names_that_would_not_sort_are_not_given(source, tmp_path, monkeypatch):
    monkeypatch.setattr("stoker.splitting.splitter._MOST_CHUNKS", 3)
    with pytest.raises(ValueError, match="more than 3 chunks: make them larger"):
        stoker.split(source, tmp_path / "chunks", count=1)


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("stoker.splitting.lines._LONGEST_QUOTED", 1000)
    (tmp_path / "big.csv").write_bytes(b'a,b\n1,"2\n' + b"3,4\n" * 1000)
    with pytest.raises(stoker.ChunkError, match="not closed"):
        stoker.split(tmp_path / "big.csv", tmp_path / "chunks", count=5)


def test_errors_show_no_secrets_of_a_url(tmp_path):
    with pytest.raises(ValueError, match="does not exist") as raised:
        stoker.split("memory://user:secret@none/a.txt?token=secret", tmp_path / "chunks", count=5)
    assert "secret" not in str(raised.value)


# Files that somebody else has put there


def test_a_link_in_the_place_of_a_file_that_is_being_written_is_not_followed(tmp_path):
    precious, into = tmp_path / "precious", tmp_path / "into"
    precious.write_text("mine")
    (tmp_path / "big.txt").write_text("one\ntwo\nthree\n")
    into.mkdir()
    for name in (".big-00000.txt.part", ".split.json.part"):
        (into / name).symlink_to(precious)
    chunks = stoker.split(tmp_path / "big.txt", into, count=2)
    assert [chunk.read_text() for chunk in chunks] == ["one\ntwo\n", "three\n"]
    assert precious.read_text() == "mine"
    assert not any(path.is_symlink() for path in into.iterdir())


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_manifest_that_is_no_file_is_an_error_and_no_wait(kind, tmp_path):
    (tmp_path / "big.txt").write_text("one\n")
    into = tmp_path / "into"
    into.mkdir()
    if kind == "pipe":
        os.mkfifo(into / ".split.json")
    else:
        (into / ".split.json").symlink_to(tmp_path / "big.txt")
    with pytest.raises(ValueError, match=r"\.split\.json is not what split has written there: it is a"):
        stoker.split(tmp_path / "big.txt", into, count=2)


def test_chunks_are_for_those_alone_who_may_read_the_source(tmp_path):
    source = tmp_path / "big.txt"
    source.write_text("one\ntwo\n")
    for bits in (0o600, 0o640, 0o644):
        source.chmod(bits)
        for chunk in stoker.split(source, tmp_path / f"into{bits}", count=1):
            assert chunk.stat().st_mode & 0o777 & ~bits == 0
