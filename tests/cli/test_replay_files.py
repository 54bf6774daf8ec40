"""What `stoker replay` makes of files that are empty, damaged or of another kind."""

from __future__ import annotations

import functools
import importlib
import json
import re
import sys
import textwrap

import pytest

import stoker
from stoker.cli import main

RECORD = {"index": 3, "epoch": 0, "error": "E: e", "traceback": "", "seed": 1, "dataset": {"type": "a:B"}}


def told_by(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(["replay", *arguments])
    return code, *capsys.readouterr()


@pytest.fixture
def path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_fine(tmp_path, capsys, content):
    file = tmp_path / "q.jsonl"
    file.write_text(content)
    assert told_by(capsys, str(file)) == (0, f"{file} is empty: no sample has failed\n", "")


@pytest.mark.usefixtures("path")
def test_a_missing_file_is_a_usage_error(tmp_path, capsys):
    for file, why in ((tmp_path / "none.jsonl", "No such file or directory"), (tmp_path, "Is a directory")):
        code, out, err = told_by(capsys, str(file))
        assert (code, out) == (2, "")
        assert err.startswith(f"stoker replay: error: cannot read {file}: {why}.")


DAMAGE = {
    "cut short": (json.dumps(RECORD)[:40], "Unterminated string|Expecting"),
    "no object": ("[1, 2]", "it is no JSON object"),
    "not JSON": ("once upon a time", "Expecting value, at column 1"),
    "no text": (b"\xff\xfe\xfd\xfc".decode("latin-1"), "codec can't decode"),
    "a key is missing": (json.dumps({**RECORD, "x": 1}).replace('"seed"', '"sead"'), "it has no 'seed'"),
    "a wrong index": (json.dumps({**RECORD, "index": "3"}), "its 'index' is wrong"),
    "a wrong truth": (json.dumps({**RECORD, "epoch": True}), "its 'epoch' is wrong"),
    "too great a seed": (json.dumps({**RECORD, "seed": 2**64}), "its 'seed' is wrong"),
    "an error that is none": (json.dumps({**RECORD, "error": None}), "its 'error' is wrong"),
    "a wrong dataset": (json.dumps({**RECORD, "dataset": {"make": "a:B"}}), "its 'dataset' is wrong"),
    "too deep": ("[" * 100_000, "recursion|overflow"),
}


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_line_is_named_by_its_number(tmp_path, capsys, kind):
    damaged, words = DAMAGE[kind]
    file = tmp_path / "q.jsonl"
    file.write_text(f"{json.dumps(RECORD)}\n\n{damaged}\n{json.dumps(RECORD)}\n", encoding="latin-1")
    code, out, err = told_by(capsys, str(file))
    assert (code, out) == (2, "")
    assert re.search(rf"{file}, line 3 is damaged: .*({words}).*Remove that line to replay the others", err)


@pytest.mark.usefixtures("path")
def test_another_kind_of_file_is_told_by_its_first_line(tmp_path, capsys):
    for content in (b"\x1f\x8b\x08\x00", b"import sys\n", b'{"stoker_state": 2}\n'):
        file = tmp_path / "q.jsonl"
        file.write_bytes(content)
        code, out, err = told_by(capsys, str(file))
        assert (code, out) == (2, "")
        assert re.search(r"line 1 is damaged: .*Is this a quarantine file\?", err)


@pytest.mark.parametrize("arguments", [["replay"], ["replay", "q.jsonl", "--index", "x"], ["replay", "q", "--index"]])
def test_bad_arguments_are_refused_with_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: stoker replay" in capsys.readouterr().err


@pytest.mark.usefixtures("path")
def test_items_and_files_cannot_be_made_again_by_an_index(tmp_path, capsys):
    """What a stream and Chunks write down is for people, and for programs of theirs."""
    file = tmp_path / "q.jsonl"

    def never(item):
        raise ArithmeticError("never")

    with stoker.stream(never, [7], on_error="quarantine", quarantine=file) as results:
        assert list(results) == []
    code, out, err = told_by(capsys, str(file))
    assert (code, out) == (2, "")
    assert re.search(r"line 1 tells of an item of a stream .*ArithmeticError: never.*replay cannot make it again", err)

    file.unlink()
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.npy").write_bytes(b"no array")
    chunks = stoker.Chunks([tmp_path / "a.txt", tmp_path / "b.npy"])
    with stoker.Loader(chunks, 1, shuffle=True, on_error="quarantine", quarantine=file) as loader:
        assert list(loader) == [["a"]]
    code, out, err = told_by(capsys, str(file))
    assert (code, out) == (2, "")
    assert re.search(r"line 1 tells of a file of Chunks .*b\.npy", err)


@pytest.mark.usefixtures("path")
def test_redacted_arguments_are_named_with_the_way_to_pass_them(tmp_path, capsys, monkeypatch):
    (tmp_path / "remote.py").write_text(textwrap.dedent(REMOTE))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("REMOTE_PASSWORD", "hunter2")
    remote = importlib.import_module("remote")
    file = tmp_path / "q.jsonl"
    dataset = functools.partial(remote.Remote, "db", password="hunter2")
    with stoker.Loader(dataset, 2, on_error="quarantine", quarantine=file) as loader:
        list(loader)
    code, out, err = told_by(capsys, str(file))
    assert (code, out) == (2, "")
    assert "arguments of it were redacted" in err
    assert "have the names of some: password. Write a function" in err
    assert f"stoker replay {file} --dataset MODULE:FUNCTION" in err
    code, out, err = told_by(capsys, str(file), "--dataset", "remote:make")
    assert (code, err) == (1, "")
    assert "sample 1 of epoch 0: fails as before: ValueError: no entry for <redacted>" in out


REMOTE = """
    import os

    class Remote:
        def __init__(self, host, password):
            self.host, self.password = host, password

        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 1:
                raise ValueError(f"no entry for {self.password}")
            return index

    def make():
        return Remote("db", os.environ["REMOTE_PASSWORD"])
"""


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("redacted", [3, [3], "password"])
def test_a_damaged_list_of_what_was_redacted_is_told(redacted, tmp_path, capsys):
    file = tmp_path / "q.jsonl"
    dataset = {"make": "a:B", "args": [], "kwargs": {}, "redacted": redacted}
    file.write_text(json.dumps({**RECORD, "dataset": dataset}))
    assert "its 'dataset' is wrong" in told_by(capsys, str(file))[2]
