"""Files on servers: an S3 that moto plays, and a web server, both in processes of their own on this machine."""

from __future__ import annotations

import socket
import traceback

import fsspec
import fsspec.asyn
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from stoker.errors import ChunkError
from stoker.sources.files.listing import list_files
from stoker.sources.files.readers import count_samples, read_chunk
from tests.files.forms import COMPRESSIONS, FORMS, expected, npy, plain, rows, tar
from tests.files.servers import forget, s3_server, web_server

s3fs = pytest.importorskip("s3fs")

SAMPLES = rows(5)
NAMES = ["a.jsonl", "b.jsonl.gz", "c.parquet", "d.tar", "e.tar.zst", "f.arrow", "g.npz"]
KEY, SECRET = "AKIDOFNOBODY", "s3cretOfNobody"


def content(name):
    form, _, compression = name.partition(".")[2].partition(".")
    return COMPRESSIONS["." + compression if compression else ""](FORMS[form](SAMPLES))


def form(name):
    return name.split(".")[1]


@pytest.fixture(scope="module")
def loop():
    """The thread of fsspec, which stays for the life of the process."""
    return fsspec.asyn.get_loop()


@pytest.fixture(scope="module")
def s3_port(loop):
    with s3_server() as port:
        yield port


@pytest.fixture
def s3(s3_port, monkeypatch):
    """A bucket with files, whose credentials are where fsspec and S3 look for them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://127.0.0.1:{s3_port}"})
    system = fsspec.filesystem("s3")
    system.mkdir("bucket")
    for name in NAMES:
        system.pipe(f"bucket/data/{name}", content(name))
    system.pipe("bucket/data/_SUCCESS", b"")
    yield system
    system.rm("bucket", recursive=True)
    del system
    forget(s3fs.S3FileSystem)


@pytest.fixture(scope="module")
def web_folder(tmp_path_factory):
    """What the web server shows."""
    folder = tmp_path_factory.mktemp("web") / "data"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(content(name))
    (folder / "half.jsonl.gz").write_bytes(content("b.jsonl.gz")[:-5])
    return folder


@pytest.fixture(scope="module")
def web_port(loop, web_folder):
    with web_server(web_folder.parent) as port:
        yield port


@pytest.fixture
def web(web_port):
    """The address of the files on the web."""
    yield f"127.0.0.1:{web_port}/data"
    forget(fsspec.get_filesystem_class("http"))


@pytest.mark.parametrize("name", NAMES)
def test_files_in_a_bucket(s3, name):
    url = f"s3://bucket/data/{name}"
    assert plain(read_chunk(url)) == expected(form(name), SAMPLES)
    assert count_samples(url) == len(SAMPLES)


@pytest.mark.parametrize("pattern", ["s3://bucket/data", "s3://bucket/data/", "s3://bucket", "s3://bucket/*/?.*"])
def test_a_bucket_is_listed(s3, pattern):
    listing = list_files(pattern)
    assert list(listing) == [f"s3://bucket/data/{name}" for name in NAMES]
    assert listing.sizes.tolist() == [len(content(name)) for name in NAMES]
    assert list_files(pattern).changes_since(listing) is None
    another = s3fs.S3FileSystem(skip_instance_cache=True)
    another.pipe("bucket/data/a.jsonl", FORMS["jsonl"](SAMPLES).replace(b"4", b"5"))
    assert str(list_files(pattern).changes_since(listing)) == "1 file changed (a.jsonl)"


def test_the_stamp_does_not_depend_on_how_a_file_was_found(s3):
    folder, single = list_files("s3://bucket/data"), list_files([f"s3://bucket/data/{name}" for name in NAMES])
    assert folder.stamps.tolist() == single.stamps.tolist()
    assert single.changes_since(folder) is None


def test_what_is_not_in_the_bucket(s3):
    for what in (read_chunk, count_samples, list_files):
        with pytest.raises(FileNotFoundError, match=r"s3://bucket/none\.jsonl"):
            what("s3://bucket/none.jsonl")
    with pytest.raises(FileNotFoundError, match="no files in"):
        list_files("s3://bucket/*.none")


@pytest.mark.parametrize("name", NAMES)
def test_files_on_the_web(web, name):
    url = f"http://{web}/{name}?signature=x"
    assert plain(read_chunk(url)) == expected(form(name), SAMPLES)
    assert count_samples(url) == len(SAMPLES)


@pytest.mark.parametrize("name", ["big.npz", "big.npy", "big.jsonl", "big.tar", "big.parquet"])
def test_a_large_file_of_a_server_that_gives_whole_files_only(web, web_folder, name):
    numbers = np.random.default_rng(0).integers(0, 1 << 60, 900_000).reshape(9, -1)
    path = web_folder / name
    if form(name) == "npz":
        np.savez(path, x=numbers)
    elif form(name) == "parquet":
        pyarrow.parquet.write_table(pa.table({"x": list(numbers)}), path, compression="none")
    else:
        forms = {"npy": npy, "jsonl": lambda rows: b"\n".join(b"%a" % row.tolist() for row in rows)}
        forms["tar"] = lambda rows: tar([(f"{i}.npy", npy(row)) for i, row in enumerate(rows)])
        path.write_bytes(forms[form(name)](numbers))
    assert path.stat().st_size > 5 << 20, "one piece, as fsspec reads it"
    assert count_samples(f"http://{web}/{name}") == len(read_chunk(f"http://{web}/{name}")) == 9
    path.unlink()


def test_the_web_is_listed(web):
    listing = list_files(f"http://{web}/?.*")
    assert list(listing) == [f"http://{web}/{name}" for name in NAMES]
    assert list(list_files(f"http://{web}/")) == [f"http://{web}/{name}" for name in sorted([*NAMES, "half.jsonl.gz"])]
    signed = list_files(f"http://{web}/a.jsonl?signature=x")
    assert list(signed) == [f"http://{web}/a.jsonl?signature=x"]
    assert signed.sizes.tolist() == [len(content("a.jsonl"))]


@pytest.mark.parametrize("what", [read_chunk, count_samples, list_files])
@pytest.mark.parametrize("name", ["none.jsonl", "half.jsonl.gz", "half.jsonl.gz/*", "a.parquet", "a.tar.xz"])
def test_no_error_tells_a_secret_of_a_url(web, what, name):
    told = failure(what, f"http://user:{SECRET}@{web}/{name}?token={KEY}")
    assert SECRET not in told
    assert KEY not in told


def test_no_error_tells_a_secret_of_the_environment(s3):
    s3.pipe("bucket/data/half.jsonl.gz", content("b.jsonl.gz")[:-5])
    for what in (read_chunk, count_samples, list_files):
        for url in ("s3://bucket/data/half.jsonl.gz", "s3://bucket/none.jsonl", "s3://none/*", "s3://none/a.parquet"):
            told = failure(what, url)
            assert SECRET not in told
            assert KEY not in told


def failure(what, url):
    """All that a user would see of the error, if there is one."""
    try:
        what(url)
    except (ChunkError, OSError, ValueError) as error:
        lines = traceback.format_exception(error)
        return "".join(line for line in lines if "what(url)" not in line)
    return ""


def test_a_server_that_does_not_answer_is_not_a_file_that_is_not_there(loop):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"http://user:{SECRET}@127.0.0.1:{nobody.getsockname()[1]}/a.jsonl"
        with pytest.raises(OSError, match=r"cannot list http://127.*/a\.jsonl: ClientConnector") as caught:
            list_files(url)
        with pytest.raises(ChunkError, match=r"a\.jsonl: ClientConnector"):
            read_chunk(url)
    assert not isinstance(caught.value, FileNotFoundError)
    forget(fsspec.get_filesystem_class("http"))


def test_half_a_file_on_the_web_is_an_error(web):
    with pytest.raises(ChunkError, match=rf"cannot read http://{web}/half\.jsonl\.gz.* ends at byte"):
        read_chunk(f"http://{web}/half.jsonl.gz?token={KEY}")
