"""Killed, failed or stopped at any line, the same call goes on and gives the same files, byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stoker
from stoker import ChunkError
from stoker.splitting import manifest, splitter
from stoker.splitting.sink import Sink
from tests.splitting import sources
from tests.splitting.killed import traced

ROOT = Path(__file__).parents[2]
CASES = [
    ("big.jsonl", {"size": 999}),
    ("big.txt.gz", {"count": 17}),
    ("big.csv.zst", {"size": "2k"}),
    ("big.npy", {"count": 31}),
    ("big.tar", {"size": "20kB"}),
    ("big.parquet", {"size": 3000}),
]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", f"tests.splitting.{module}", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("turn", [0, *[pytest.param(k, marks=pytest.mark.exhaustive) for k in (1, 2)]])
@pytest.mark.parametrize(("name", "limit"), CASES)
def test_killed_at_any_line_no_chunk_is_half_and_the_rest_follows(name, limit, turn, tmp_path):
    source = sources.example(tmp_path / name)
    lines = []
    traced(source, tmp_path / "whole", limit, lambda n: lines.append(n))
    whole = files(tmp_path / "whole")
    chance = random.Random(f"{name} {turn}")
    into = tmp_path / "killed"
    for line in (chance.randrange(1, len(lines) * 2 // 3), chance.randrange(1, len(lines) // 6)):
        done = run("killed", source, into, json.dumps(limit), line)
        assert done.returncode == -signal.SIGKILL, done.stderr
        if into.exists():
            assert files(into).items() <= whole.items()
    stoker.split(source, into, **limit)
    assert files(into) == whole
    assert (into / manifest.NAME).read_bytes() == (tmp_path / "whole" / manifest.NAME).read_bytes()
    assert sorted(os.listdir(into)) == sorted([*whole, manifest.NAME]), "nothing hidden is left"


class Stop(Exception):
    pass


@pytest.mark.parametrize(("name", "limit"), CASES)
def test_stopped_after_each_chunk_it_goes_on(name, limit, tmp_path, monkeypatch):
    """As if it were interrupted right behind each manifest that it writes."""
    source = sources.example(tmp_path / name)
    chunks = stoker.split(source, tmp_path / "whole", **limit)
    write = manifest.write

    def write_and_stop(folder, state):
        write(folder, state)
        if state.chunks and not state.finished:
            raise Stop

    monkeypatch.setattr(manifest, "write", write_and_stop)
    for done in range(1, len(chunks) + 1):
        with pytest.raises(Stop):
            stoker.split(source, tmp_path / "parts", **limit)
        assert len(files(tmp_path / "parts")) == done
    stoker.split(source, tmp_path / "parts", **limit)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_of_many_chunks_a_few_are_made_again(tmp_path, monkeypatch):
    """As the manifest is not saved behind each; here behind every second one."""
    monkeypatch.setattr(splitter, "_SAVED_EACH", 2)
    source = sources.example(tmp_path / "big.jsonl", 30)
    stoker.split(source, tmp_path / "whole", count=1)
    made = []

    def sink(file, compression):
        made.append(file.name)
        if len(made) % 12 == 0:
            raise Stop
        return Sink(file, compression)

    monkeypatch.setattr(splitter, "Sink", sink)
    for _ in range(2):
        with pytest.raises(Stop):
            stoker.split(source, tmp_path / "parts", count=1)
    stoker.split(source, tmp_path / "parts", count=1)
    assert len(made) - 2 > 30
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    assert len(files(tmp_path / "parts")) == 30


def test_a_source_that_grows_meanwhile_is_not_finished(tmp_path):
    source = sources.example(tmp_path / "big.jsonl")

    def grow(done, _):
        if done < 100_000:  # else it would never end
            with open(source, "ab") as file:
                file.write(b"{}\n")

    with pytest.raises(ValueError, match="has changed while it was split: remove the folder"):
        stoker.split(source, tmp_path / "chunks", count=50, on_progress=grow)
    with pytest.raises(ValueError, match="has changed since"):
        stoker.split(source, tmp_path / "chunks", count=50)


def test_a_finished_split_is_not_made_again(tmp_path):
    source = sources.example(tmp_path / "big.jsonl.gz")
    chunks = stoker.split(source, tmp_path / "chunks", size=500)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()}
    assert stoker.split(source, tmp_path / "chunks", size="0.5k", on_progress=pytest.fail) == chunks
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()} == before


@pytest.mark.parametrize(
    "name", ["big.txt.gz", "big.jsonl.bz2", "big.csv.xz", "big.txt.zst", "big.tar.gz", "big.npy.gz"]
)
def test_a_source_that_is_cut_short_keeps_the_chunks_before(name, tmp_path):
    """Long enough that more than one buffer is read before the damage."""
    n = {"big.npy.gz": 400_000, "big.jsonl.bz2": 60_000, "big.tar.gz": 2_000}.get(name, 20_000)
    source = sources.example(tmp_path / name, n)
    stoker.split(source, tmp_path / "whole", count=n // 20)
    os.truncate(source, source.stat().st_size - 10)
    with pytest.raises(ChunkError, match=rf"{name} .* byte {source.stat().st_size:,} "):
        stoker.split(source, tmp_path / "short", count=n // 20)
    done = files(tmp_path / "short")
    assert 0 < len(done) < len(files(tmp_path / "whole"))
    assert done.items() <= files(tmp_path / "whole").items()
    assert [chunk.name for chunk in manifest.read(tmp_path / "short").chunks] == sorted(done)


@pytest.mark.parametrize("name", ["big.npy", "big.tar", "big.parquet", "big.txt.zst", "big.txt.gz", "big.jsonl.xz"])
def test_damaged_sources_are_chunk_errors(name, tmp_path):
    source = sources.example(tmp_path / name)
    data = source.read_bytes()
    source.write_bytes(b"garbage" + data[7:])
    with pytest.raises(ChunkError, match=name):
        stoker.split(source, tmp_path / "garbage", count=5)
    source.write_bytes(data[: len(data) * 2 // 3 + 5])
    with pytest.raises(ChunkError, match=name):
        stoker.split(source, tmp_path / "short", count=5)


def test_a_tar_with_a_damaged_header_does_not_end_there(tmp_path):
    data = bytearray(sources.example(tmp_path / "big.tar").read_bytes())
    data[1024 * 40 + 3] ^= 1
    (tmp_path / "big.tar").write_bytes(data)
    with pytest.raises(ChunkError, match=r"big.tar, at byte 41,472 of its content: no header"):
        stoker.split(tmp_path / "big.tar", tmp_path / "chunks", count=5)
    (tmp_path / "two.tar").write_bytes(sources.tar_content([("a.b", b"c")]) * 2)
    with pytest.raises(ChunkError, match="more behind the end"):
        stoker.split(tmp_path / "two.tar", tmp_path / "two", count=5)


def test_a_disk_that_is_full(tmp_path):
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode:
        pytest.skip("no mounting here")
    source = sources.example(tmp_path / "big.jsonl", 3_000)
    stoker.split(source, tmp_path / "whole", count=100)
    (tmp_path / "mounted").mkdir()
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = [sys.executable, "-m", "tests.splitting.full_disk", source, tmp_path / "mounted", tmp_path / "whole"]
    done = subprocess.run(
        ["unshare", "-rm", *script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "done\n", done.stderr
