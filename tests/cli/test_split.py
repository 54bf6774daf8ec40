"""`stoker split`: the same as `stoker.split`, with a bar, a summary and exit codes."""

from __future__ import annotations

import contextlib
import gzip
import os
import pty
import subprocess
import sys

import pytest

import stoker as package
from tests.cli.running import Done, run


def stoker(*arguments: object) -> Done:
    return run("split", *arguments)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "big.txt"
    path.write_bytes(b"".join(b"%d\n" % k for k in range(1000)))
    return path


def test_it_splits_and_sums_up(source, tmp_path):
    done = stoker(source, tmp_path / "chunks", "--size", "1kB")
    assert done == (0, f"4 chunks in {tmp_path / 'chunks'}: 1,000 records, 3,890 bytes\n", "")
    held = [path.read_bytes() for path in sorted((tmp_path / "chunks").glob("*.txt"))]
    assert b"".join(held) == source.read_bytes()
    assert stoker(source, tmp_path / "chunks", "--size", "1000") == done, "once more: nothing to do"


def test_by_count(source, tmp_path):
    assert stoker(source, tmp_path / "chunks", "--count", 1000).stdout.startswith("1 chunk in ")


@pytest.mark.parametrize("limit", [[], ["--size", "1k", "--count", "5"], ["--count", "five"]])
def test_bad_usage_is_refused_with_the_usage(limit, source, tmp_path):
    done = stoker(source, tmp_path / "chunks", *limit)
    assert done.returncode == 2
    assert "usage: stoker split" in done.stderr
    assert not (tmp_path / "chunks").exists()


@pytest.mark.parametrize(
    ("name", "limit", "why"),
    [
        ("big.txt", ["--size", "5 parsecs"], "size='5 parsecs' is no size"),
        ("big.txt", ["--count", "0"], "count=0"),
        ("none.txt", ["--count", "5"], "none.txt does not exist"),
        ("big.exe", ["--count", "5"], "ending that split does not know"),
    ],
)
def test_what_cannot_be_split_is_an_error(name, limit, why, source, tmp_path):
    done = stoker(tmp_path / name, tmp_path / "chunks", *limit)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("stoker split: error: ")
    assert why in done.stderr


def test_a_damaged_file_has_an_exit_code_of_its_own(tmp_path):
    path = tmp_path / "big.txt.gz"
    path.write_bytes(gzip.compress(b"line\n" * 1000)[:-9])
    done = stoker(path, tmp_path / "chunks", "--count", 5)
    assert done.returncode == 1
    assert f"{path} is damaged or cut short" in done.stderr


def test_interrupted_it_says_how_to_go_on(source, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(package, "split", interrupted)
    done = stoker(source, tmp_path / "chunks", "--count", 5)
    assert done.returncode == 130
    assert "the same command goes on" in done.stderr


def test_a_name_is_not_obeyed_by_the_terminal(tmp_path):
    path = tmp_path / "\x1b[31m[red].txt"
    path.write_text("a\n")
    assert stoker(path, tmp_path / "\x1b[31m", "--count", 5).stdout.startswith("1 chunk in ")


def test_where_there_is_a_terminal_a_bar_shows_how_far_it_is(source, tmp_path):
    near, far = pty.openpty()
    script = "import sys; from stoker.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "split", source, tmp_path / "chunks", "--count", "10"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=far, stdout=far, stderr=far, env=environment) as program:
        os.close(far)
        told = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(near, 4096):
                told += piece
        os.close(near)
    assert program.returncode == 0
    assert "━" in told.decode()
    assert "100 chunks in" in told.decode()
