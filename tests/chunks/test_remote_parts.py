"""Large files that are far away: parts of them are fetched, where their server gives parts."""

from __future__ import annotations

import fsspec
import fsspec.asyn
import numpy as np
import pytest

from stoker import Chunks, Loader, Threads
from stoker.sources.files import parts, ranges
from stoker.sources.files.parts import Limits
from tests.chunks.files import epochs, flat
from tests.chunks.large_files import ROWS, WRITERS
from tests.files.servers import forget, web_server

s3fs = pytest.importorskip("s3fs")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(parts, "LIMITS", Limits(part=300, whole=600, large=2000))


@pytest.fixture
def bucket(s3, tmp_path):
    s3.mkdir("parts")
    for form, write in WRITERS.items():
        write(tmp_path / f"big.{form}", 0, ROWS)
        s3.put(str(tmp_path / f"big.{form}"), f"parts/big.{form}")
    yield "s3://parts/big."
    s3.rm("parts", recursive=True)
    del s3
    forget(s3fs.S3FileSystem)


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_bucket(bucket, form, shuffle):
    with Loader(Chunks(bucket + form), 7, shuffle=shuffle) as loader:
        found = flat(epochs(loader, 1)[0])
        assert len(loader._session._agenda.epochs[0].parts) > 5
    assert (sorted(found) if shuffle else found) == list(range(ROWS))


def test_a_bucket_in_other_processes(bucket):
    with Loader(Chunks(bucket + "parquet"), 7, workers=2, shuffle=True) as loader:
        assert sorted(flat(epochs(loader, 1)[0])) == list(range(ROWS))


def test_only_what_is_needed_of_a_bucket_is_fetched(bucket, monkeypatch):
    """Contract: a shard reads its own parts only, and in a bucket no more than these and the ends of their lines."""
    fetched = []

    def read_range(path, begin, end):
        fetched.append(end - begin)
        return original(path, begin, end)

    original = ranges.read_range
    monkeypatch.setattr(ranges, "_MORE_BYTES", 64)
    with Loader(Chunks(bucket + "jsonl"), 7, shuffle=True, shard=(0, 3)) as loader:
        size = int(loader._session._agenda.epochs[0].parts.listing.sizes[0])
        monkeypatch.setattr(ranges, "read_range", read_range)
        epochs(loader, 1)
    assert 0 < sum(fetched) < size * 0.8


def test_through_a_cache_of_fsspecs(bucket):
    with Loader(Chunks(f"simplecache::{bucket}jsonl"), 7, workers=Threads(2)) as loader:
        assert len(loader._session._agenda.epochs[0].parts) > 5
        assert flat(epochs(loader, 1)[0]) == list(range(ROWS))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_web_server_that_gives_whole_files_only(tmp_path, form, caplog):
    fsspec.asyn.get_loop()
    WRITERS[form](tmp_path / f"big.{form}", 0, ROWS)
    with web_server(tmp_path) as port:
        with Loader(Chunks(f"http://127.0.0.1:{port}/big.{form}"), 7) as loader:
            assert len(loader._session._agenda.epochs[0].parts) == 1
            assert flat(epochs(loader, 1)[0]) == list(range(ROWS))
    assert any("its server gives whole files only" in message for message in caplog.messages)
    forget(fsspec.get_filesystem_class("http"))


def test_a_file_in_an_archive_is_read_as_a_whole(tmp_path, caplog):
    import zipfile

    np.save(tmp_path / "big.npy", np.arange(500))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "big.npy", "big.npy")
    with Loader(Chunks(f"zip://big.npy::{tmp_path / 'a.zip'}"), 100) as loader:
        assert [n for batch in loader for n in batch.tolist()] == list(range(500))
    assert any("a file in an archive can only be read from its beginning" in message for message in caplog.messages)
