"""`stoker cache`: what a cache holds, whether it is sound, and how to be rid of it; whatever lies in the folder."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stoker import Cache, Loader
from stoker.stores.cache_layout import ENTRY, HEADER_BYTES
from tests.cli.running import Done, run

N = 30


class Rows:
    """Row k is k, eight times."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full(8, index)


@pytest.fixture
def path(tmp_path):
    """A cache that holds all samples."""
    return filled(tmp_path / "cache")


def filled(path: Path, batches: int | None = None, **how) -> Path:
    with Loader(Rows(N), 3, cache=Cache(path, **how)) as loader:
        for number, _ in enumerate(loader, 1):
            if number == batches:
                break
    return path


def stoker(*arguments: object) -> Done:
    return run("cache", *arguments)


def flip(file: Path, byte: int) -> None:
    data = bytearray(file.read_bytes())
    data[byte] ^= 1
    file.write_bytes(data)


def entry(file: Path, index: int):
    return np.fromfile(file, ENTRY, N, offset=HEADER_BYTES)[index]


# ls


def test_ls_tells_whose_it_is_and_how_full(path):
    done = stoker("ls", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^dataset +\S*:Rows\(n=30\)$", done.stdout, re.M)
    assert re.search(r"^version +none$", done.stdout, re.M)
    assert re.search(r"^codec +safe$", done.stdout, re.M)
    size = (path / "all.samples").stat().st_size
    assert re.search(rf"^ *all +30 +30 +{size:,} +\d+ s ago +no *$", done.stdout, re.M)


def test_ls_of_a_cache_that_is_being_filled_and_refreshed(tmp_path):
    path = tmp_path / "cache"
    with Loader(Rows(N), 3, cache=Cache(path, refresh_every=2, version="v7", codec="pickle")) as loader:
        list(loader)
        list(loader)
        next(iter(loader))
        done = stoker("ls", path)
    assert done.returncode == 0
    assert re.search(r"^version +v7$", done.stdout, re.M)
    assert re.search(r"^codec +pickle$", done.stdout, re.M)
    assert re.search(r"^ *seed0-epoch0 +30 +30 +[\d,]+ +\d+ s ago +no *$", done.stdout, re.M)
    assert re.search(r"^ *seed0-epoch2 +3 +30 +[\d,]+ +\d+ s ago +yes *$", done.stdout, re.M)


def test_ls_tells_the_age_in_words(path):
    for seconds, words in ((200, "3 min ago"), (2 * 86_400, "2 d ago"), (-50, "0 s ago")):
        then = os.stat(path / "all.samples").st_ctime - seconds
        os.utime(path / "all.samples", (then, then))
        assert words in stoker("ls", path).stdout


def test_what_a_file_tells_is_not_obeyed_by_the_terminal(path):
    about = path / "about.json"
    about.write_text(about.read_text().replace("Rows(n=30)", r"\u001b]0;gotcha\u0007\u001b[31m[red]"))
    done = stoker("ls", path)
    assert done.returncode == 0
    assert r"\x1b]0;gotcha\x07\x1b[31m[red]" in done.stdout


# verify


def test_verify_of_a_sound_cache(path):
    done = stoker("verify", path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "all: 30 sound, 0 damaged, 0 missing\n", "")


def test_verify_counts_what_is_not_there_yet(tmp_path):
    done = stoker("verify", filled(tmp_path / "cache", batches=4))
    assert (done.returncode, done.stdout) == (0, "all: 12 sound, 0 damaged, 18 missing\n")


def test_verify_names_what_is_damaged(path):
    file = path / "all.samples"
    for index in (3, 17):
        flip(file, int(entry(file, index)["offset"]) + 9)
    flip(file, HEADER_BYTES + 20 * ENTRY.itemsize + ENTRY.fields["check"][1])
    before = file.read_bytes()
    done = stoker("verify", path)
    assert (done.returncode, done.stderr) == (1, "")
    told = "all: 27 sound, 3 damaged, 0 missing. Damaged: 3, 17, 20. They will be made again\n"
    assert done.stdout == told
    assert file.read_bytes() == before, "it only looks"


def test_verify_of_every_generation(tmp_path):
    path = tmp_path / "cache"
    with Loader(Rows(N), 3, cache=Cache(path, refresh_every=2)) as loader:
        for _ in range(2):
            list(loader)
        next(iter(loader))
    done = stoker("verify", path)
    assert done.returncode == 0
    assert done.stdout == (
        "seed0-epoch0: 30 sound, 0 damaged, 0 missing\nseed0-epoch2: 3 sound, 0 damaged, 27 missing\n"
    )


def test_verify_of_a_cache_that_was_cut_short(path):
    file = path / "all.samples"
    os.truncate(file, int(entry(file, 29)["offset"]))
    done = stoker("verify", path)
    assert done.returncode == 1
    assert "29 sound, 1 damaged, 0 missing. Damaged: 29." in done.stdout
    os.truncate(file, HEADER_BYTES + 10 * ENTRY.itemsize + 5)
    done = stoker("verify", path)
    assert done.returncode == 1
    assert "0 sound, 10 damaged, 20 missing. Damaged: 0, 1, 2," in done.stdout


def test_verify_of_a_damaged_header_says_what_becomes_of_it(path):
    flip(path / "all.samples", 9)
    done = stoker("verify", path)
    assert done.returncode == 1
    assert done.stdout.startswith("all: its header is damaged.")
    assert "header damaged" in stoker("ls", path).stdout
    filled(path)
    assert stoker("verify", path).returncode == 0


@pytest.mark.parametrize("size", [0, 1, 63, 5000, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_garbage_is_told_and_not_run_and_no_crash(seed, size, path):
    garbage = np.random.default_rng(seed).bytes(size)
    (path / "all.samples").write_bytes(garbage)
    assert stoker("verify", path).returncode == int(size > 0)
    assert stoker("ls", path).returncode == 0


def test_a_table_of_garbage_behind_a_sound_header_is_no_crash(path):
    file = path / "all.samples"
    data = bytearray(file.read_bytes())
    data[HEADER_BYTES:] = np.random.default_rng(4).bytes(len(data) - HEADER_BYTES)
    for index in range(0, N, 2):  # half of them look as if they were there
        start = HEADER_BYTES + index * ENTRY.itemsize
        data[start : start + 4] = (2).to_bytes(4, "little")
    file.write_bytes(data)
    done = stoker("verify", path)
    assert done.returncode == 1
    assert " 0 sound, 30 damaged, 0 missing. " in done.stdout
    assert done.stdout.endswith(" and 10 more. They will be made again\n")


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_in_a_cache_is_run_whatever_its_codec(tmp_path):
    """Its samples are pickles that make a file when they are loaded."""

    class Bad(Rows):
        def __getitem__(self, index):
            return [Malicious(tmp_path / "run")]

    path = tmp_path / "cache"
    with Loader(Bad(N), 3, cache=Cache(path, codec="pickle"), collate=len) as loader:
        assert list(loader) == [3] * 10
    assert stoker("verify", path).stdout == "all: 30 sound, 0 damaged, 0 missing\n"
    assert stoker("ls", path).returncode == 0
    assert stoker("rm", path).returncode == 0
    assert not (tmp_path / "run").exists()
    pickle.loads(pickle.dumps(Malicious(tmp_path / "run")))
    assert (tmp_path / "run").exists(), "it would have shown"


def test_where_there_is_a_terminal_a_bar_shows_how_far_it_is(path):
    shown = in_a_terminal("verify", path)
    assert "━" in shown
    assert "all: 30 sound, 0 damaged, 0 missing" in shown
    assert "┏━━" in in_a_terminal("ls", path)


def in_a_terminal(*arguments: object) -> str:
    import pty

    near, far = pty.openpty()
    script = "import sys; from stoker.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "cache", *map(str, arguments)]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=far, stdout=far, stderr=far, env=environment) as program:
        os.close(far)
        told = b""
        try:
            while piece := os.read(near, 4096):
                told += piece
        except OSError:  # the other end is closed
            pass
        os.close(near)
    assert program.returncode == 0
    return told.decode()


# rm


def test_rm_removes_it_and_says_how_much_that_was(path):
    size = sum(file.stat().st_size for file in path.iterdir())
    done = stoker("rm", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"removed {path}: {size:,} bytes freed\n"
    assert not path.exists()


def test_rm_leaves_what_is_not_the_caches(path):
    (path / "thesis.txt").write_text("mine")
    (path / "folder.samples").mkdir()
    done = stoker("rm", path)
    assert done.returncode == 0
    assert "left there, as not of the cache: folder.samples, thesis.txt\n" in done.stdout
    assert sorted(os.listdir(path)) == ["folder.samples", "thesis.txt"]


def test_rm_refuses_a_cache_that_is_in_use_unless_it_is_forced(tmp_path):
    path = tmp_path / "cache"
    with Loader(Rows(N), 3, workers=2, cache=Cache(path)) as loader:
        first = [batch.tolist() for batch in loader]
        done = stoker("rm", path)
        assert done.returncode == 2
        assert f"{path} is in use: end the programs that read it, or pass --force" in done.stderr
        assert stoker("verify", path).stdout.startswith("all: 30 sound")
        assert stoker("rm", "--force", path).returncode == 0
        assert not path.exists()
        assert [batch.tolist() for batch in loader] == first
    with Loader(Rows(N), 3, workers=2, cache=Cache(path)) as loader:
        assert [batch.tolist() for batch in loader] == first


def test_rm_removes_a_cache_whose_about_json_is_damaged(path):
    """That is what the error of a Loader says."""
    (path / "about.json").write_text("{")
    for command in ("ls", "verify"):
        done = stoker(command, path)
        assert done.returncode == 2
        assert f"`stoker cache rm {path}`" in done.stderr
    assert stoker("rm", path).returncode == 0
    assert not path.exists()


# What is no cache


@pytest.mark.parametrize("command", ["ls", "verify", "rm"])
def test_what_is_no_cache_is_an_error_and_left_alone(command, tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("mine")
    (folder / "data.samples").write_text("mine")
    for path, why in (
        (folder, "it has no about.json"),
        (file, "it is a file"),
        (tmp_path / "nowhere", "it is not there"),
    ):
        done = stoker(command, path)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == f"stoker cache: error: {path} is no cache of Stoker's: {why}\n"
    (folder / "about.json").write_text('{"name": "another program\'s"}')
    assert stoker(command, folder).returncode == 2
    assert sorted(os.listdir(folder)) == ["about.json", "data.samples"]


@pytest.mark.parametrize("arguments", [[], ["ls"], ["stoke", "there"], ["rm", "--gently", "one"]])
def test_bad_arguments_are_refused_with_the_usage(arguments):
    done = stoker(*arguments)
    assert done.returncode == 2
    assert "usage: stoker" in done.stderr


def test_a_cache_in_which_nothing_is_yet(tmp_path):
    path = filled(tmp_path / "cache")
    (path / "all.samples").unlink()
    for command in ("ls", "verify"):
        done = stoker(command, path)
        assert done.returncode == 0
        assert "no generation yet" in done.stdout
