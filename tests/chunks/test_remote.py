"""Chunk files that are far away: on S3, and on the web."""

from __future__ import annotations

import fsspec
import fsspec.asyn
import pytest

from stoker import ChunkError, Chunks, Loader, Processes, Threads
from tests.chunks.files import epochs, flat, write_chunks
from tests.files.servers import forget, web_server

s3fs = pytest.importorskip("s3fs")

SIZES = [5, 9, 2, 7]
TOTAL = sum(SIZES)


@pytest.fixture
def bucket(s3, tmp_path):
    s3.mkdir("bucket")
    for file in write_chunks(tmp_path / "data", SIZES):
        s3.put(str(file), f"bucket/data/{file.name}")
    yield s3
    s3.rm("bucket", recursive=True)
    del s3
    forget(s3fs.S3FileSystem)


@pytest.mark.parametrize("workers", [0, Threads(4), 2], ids=repr)
@pytest.mark.parametrize("files", ["s3://bucket/data", "s3://bucket/data/*.jsonl"])
def test_a_bucket(bucket, workers, files):
    with Loader(Chunks(files), 4, workers=workers) as loader:
        assert [flat(epoch) for epoch in epochs(loader, 2)] == [list(range(TOTAL))] * 2


@pytest.mark.parametrize("workers", [Threads(2), 2, Processes(2, start="spawn")], ids=repr)
def test_settings_that_the_program_has_made_reach_workers(bucket, s3_port, monkeypatch, workers):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    settings = {"endpoint_url": f"http://127.0.0.1:{s3_port}", "key": "AKIDOFNOBODY", "secret": "s3cretOfNobody"}
    monkeypatch.setitem(fsspec.config.conf, "s3", settings)
    with Loader(Chunks("s3://bucket/data"), 4, workers=workers) as loader:
        assert flat(epochs(loader, 1)[0]) == list(range(TOTAL))


def test_it_resumes_and_sees_changes(bucket, caplog):
    with Loader(Chunks("s3://bucket/data", interleave=2), 4, shuffle=True, workers=Threads(2)) as loader:
        (whole,) = epochs(loader, 1)
    with Loader(Chunks("s3://bucket/data", interleave=2), 4, shuffle=True, workers=Threads(2)) as loader:
        got = [next(iter(loader))["number"].tolist()]
        state = loader.state_dict()
    with Loader(Chunks("s3://bucket/data", interleave=2), 4, shuffle=True, workers=2) as loader:
        loader.load_state_dict(state)
        assert got + epochs(loader, 1)[0] == whole
        bucket.pipe("bucket/data/more.jsonl", b'{"number": 23, "file": 4}\n')
        assert sorted(flat(epochs(loader, 1)[0])) == list(range(TOTAL + 1))
    assert any("more.jsonl" in message for message in caplog.messages)


def test_a_corrupt_file_is_named_without_credentials(bucket, caplog):
    bucket.pipe("bucket/data/00001.jsonl", b"{")
    with Loader(Chunks("s3://bucket/data"), 4, workers=2, shuffle=True) as loader:
        with pytest.raises(ChunkError, match=r"s3://bucket/data/00001\.jsonl") as caught:
            epochs(loader, 1)
    told = str(caught.value) + "".join(caught.value.__notes__) + caplog.text
    assert "s3cretOfNobody" not in told
    assert "AKIDOFNOBODY" not in told


@pytest.mark.parametrize("workers", [Threads(4), 2], ids=repr)
def test_the_web(tmp_path, workers):
    fsspec.asyn.get_loop()
    files = write_chunks(tmp_path / "data", SIZES)
    with web_server(tmp_path) as port:
        urls = [f"http://127.0.0.1:{port}/data/{file.name}" for file in files]
        with Loader(Chunks(urls), 4, workers=workers) as loader:
            assert flat(epochs(loader, 1)[0]) == list(range(TOTAL))
    forget(fsspec.get_filesystem_class("http"))


def test_the_memory_of_this_process_is_not_that_of_its_workers(tmp_path):
    """Threads share it; for processes the error says so."""
    system = fsspec.filesystem("memory")
    for file in write_chunks(tmp_path / "data", SIZES):
        system.pipe(f"/chunks/{file.name}", file.read_bytes())
    try:
        with Loader(Chunks("memory://chunks"), 4, workers=Threads(2)) as loader:
            assert [flat(epoch) for epoch in epochs(loader, 1)] == [list(range(TOTAL))]
        with Loader(Chunks("memory://chunks"), 4, workers=2) as loader:
            with pytest.raises(FileNotFoundError) as caught:
                epochs(loader, 1)
        assert any("memory of one process: use workers=stoker.Threads" in note for note in caught.value.__notes__)
    finally:
        system.rm("/chunks", recursive=True)
