"""``--json``: one object on standard output, the same exit code, and errors on standard error."""

from __future__ import annotations

import json

import numpy as np
import pytest

import stoker
from tests.cli.replaying import replay, train
from tests.cli.running import run


@pytest.fixture
def cache(tmp_path):
    with stoker.Loader(np.arange(30), 3, cache=stoker.Cache(tmp_path / "cache")) as loader:
        list(loader)
    return tmp_path / "cache"


def test_of_a_cache(cache):
    listed = json.loads(run("cache", "ls", cache, "--json").stdout)
    assert listed.keys() == {"dataset", "version", "codec", "generations"}
    (generation,) = listed["generations"]
    assert (generation["name"], generation["kept"], generation["count"]) == ("all", 30, 30)
    done = run("cache", "verify", cache, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["generations"] == [
        {"name": "all", "sound": 30, "missing": 0, "damaged": [], "header_damaged": False}
    ]
    removed = json.loads(run("cache", "rm", cache, "--json").stdout)
    assert removed["removed"] == str(cache)
    assert removed["bytes"] > 0
    assert removed["left"] == []


def test_of_a_damaged_cache_the_exit_code_stays(cache):
    (file,) = cache.glob("*.samples")
    file.write_bytes(bytes(20) + file.read_bytes()[20:])
    done = run("cache", "verify", cache, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["generations"][0]["header_damaged"]


def test_of_a_split(tmp_path):
    (tmp_path / "big.txt").write_text("".join(f"{k}\n" for k in range(100)))
    done = run("split", tmp_path / "big.txt", tmp_path / "chunks", "--count", 40, "--json")
    found = json.loads(done.stdout)
    assert (found["folder"], found["records"], found["bytes"]) == (str(tmp_path / "chunks"), 100, 290)
    assert found["chunks"] == [str(path) for path in sorted((tmp_path / "chunks").glob("*.txt"))]


def test_of_a_replay(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 13])")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("if index in self.bad", "if index in self.bad and index != 3"))
    done = replay(folder, "--json")
    assert done.returncode == 1
    works, fails = json.loads(done.stdout)["samples"]
    before = "ValueError: shape 3 has no sides"
    assert works == {"index": 3, "epoch": 0, "outcome": "works", "error": None, "before": before, "traceback": None}
    assert (fails["index"], fails["outcome"]) == (13, "same")
    assert fails["error"] == fails["before"] == "ValueError: shape 13 has no sides"
    assert "in draw" in fails["traceback"]


def test_of_nothing_to_replay(tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    assert json.loads(run("replay", tmp_path / "none.jsonl", "--json").stdout) == {"samples": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ("cache", "ls", "{}/none"),
        ("cache", "verify", "{}/none"),
        ("split", "{}/none.txt", "{}/into", "--count", "3"),
        ("replay", "{}/none.jsonl"),
        ("replay", "{}/none.jsonl", "--pdb"),
    ],
)
def test_errors_are_on_standard_error_with_an_exit_code(arguments, tmp_path):
    done = run(*(argument.format(tmp_path) for argument in arguments), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith((f"stoker {arguments[0]}: error: ", "usage: "))
