"""The quarantine file: what is written down of a sample that fails, for whom, and what is not in it."""

from __future__ import annotations

import functools
import logging
import os
import stat
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from stoker import Loader, TooManyErrors
from stoker.sources import IndexedSource
from tests.datasets import Rows
from tests.observe.faults import Maker, Patchy, but, lines, logged, taken

# The file: whose it is, and what is not in it


class Remote(Rows):
    """Tells its secrets in its errors, as drivers of databases do."""

    def __init__(self, url, password, *, options=None):
        super().__init__(10)
        self.url, self.password, self.options = url, password, options

    def __getitem__(self, index):
        if index == 3:
            raise ConnectionError(f"no answer from {self.url} for me and {self.password}, with {self.options}")
        return super().__getitem__(index)


SECRET = ("sql://me:hunter2@db/x?sig=deadbeef99", "correct horse")


def quarantined(dataset, file, workers=0):
    with Loader(dataset, 5, workers=workers, on_error="quarantine", quarantine=file) as loader:
        list(loader)
    return lines(file)


@pytest.mark.parametrize(
    "dataset",
    [
        functools.partial(Remote, *SECRET, options={"api_key": "swordfish", "n": 3}),
        functools.partial(Remote, SECRET[0], password=SECRET[1], options=["Bearer swordfish1"]),
        Remote(*SECRET, options={"api_key": "swordfish", "n": 3}),
    ],
    ids=["by position", "by name", "an object"],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_secrets_are_neither_written_down_nor_logged(dataset, workers, tmp_path, caplog):
    file = tmp_path / "q.jsonl"
    (record,) = quarantined(dataset, file, workers)
    for told in (file.read_text(), caplog.text):
        assert "sql://<redacted>@db/x?sig=<redacted>" in told
        for secret in ("hunter2", "deadbeef99", "correct horse", "swordfish"):
            assert secret not in told
    if isinstance(dataset, functools.partial):
        names = {"url", "password", "options['api_key']", "options[0]"}
        assert len(record["dataset"]["redacted"]) == 3
        assert set(record["dataset"]["redacted"]) <= names
    else:
        assert "redacted" not in record["dataset"]


def test_an_error_that_is_raised_in_the_end_tells_no_secrets_either():
    dataset = functools.partial(Remote, *SECRET)
    with Loader(dataset, 5, on_error="skip", max_errors=0) as loader, pytest.raises(TooManyErrors) as caught:
        list(loader)
    assert "hunter2" not in str(caught.value) + "".join(caught.value.__notes__)


def test_arguments_that_are_no_secrets_stay(tmp_path):
    """Words of language models, hashes, and keys of samples."""
    known = {
        "pad_token": "<pad>",
        "image_key": "jpg",
        "max_tokens": 512,
        "revision": "9f86d081884c7d659a2feaa0c55ad015",
    }
    dataset = functools.partial(Patchy, 40, bad=[3, 13])
    (record, _) = quarantined(dataset, tmp_path / "q.jsonl")
    assert record["dataset"] == {"make": "tests.observe.faults:Patchy", "args": [40], "kwargs": {"bad": [3, 13]}}
    source = IndexedSource.of(functools.partial(Remote, "sql://db/x", None, options=known))
    assert source.reference()["kwargs"] == {"options": known}
    assert source.secrets() == set()


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_file_is_for_this_user_alone(umask, tmp_path):
    file = tmp_path / "q.jsonl"
    before = os.umask(umask)
    try:
        quarantined(Patchy(40), file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_one_that_others_could_read_is_closed_to_them(tmp_path):
    """As earlier versions have left it, with secrets in it."""
    file = tmp_path / "q.jsonl"
    file.touch(0o644)
    quarantined(Patchy(40), file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_in_a_folder_that_is_shared_with_a_group_it_is_for_the_group(tmp_path):
    tmp_path.chmod(0o2770)
    quarantined(Patchy(40), tmp_path / "q.jsonl")
    assert stat.S_IMODE((tmp_path / "q.jsonl").stat().st_mode) == 0o660


def test_a_link_of_the_users_own_is_followed(tmp_path):
    (tmp_path / "link").symlink_to("q.jsonl")
    quarantined(Patchy(40), tmp_path / "link")
    assert len(lines(tmp_path / "q.jsonl")) == 1


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "pipe", "file"])
def test_what_is_somebody_elses_is_left_alone_and_that_is_told(kind, tmp_path, caplog, monkeypatch):
    """Seen from a user who has none of it."""
    precious, file = tmp_path / "precious", tmp_path / "q.jsonl"
    precious.write_text("mine")
    if kind == "symbolic link":
        file.symlink_to(precious)
    elif kind == "hard link":
        file.hardlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.write_text("theirs")
    owner = os.geteuid() or 65_533
    for one in (file, precious):
        if os.geteuid() == 0:
            os.chown(one, owner, -1, follow_symlinks=False)
    if os.geteuid() != 0:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with Loader(Patchy(40), 5, on_error="quarantine", quarantine=file) as loader:
        assert taken(loader) == but(13)
    assert len(logged(caplog, f"cannot write to the quarantine file {file}: ")) == 1
    assert precious.read_text() == "mine"
    if kind == "file":
        assert file.read_text() == "theirs"


def test_a_stream_may_be_given_as_a_device(capfd):
    with Loader(Patchy(40), 5, on_error="quarantine", quarantine="/dev/stderr") as loader:
        list(loader)
    assert "sample 13 is bad" in capfd.readouterr().err


# The file


def test_each_sample_is_written_down_in_a_line_of_its_own(backend, tmp_path):
    file = tmp_path / "q.jsonl"
    dataset = functools.partial(Patchy, 40, bad=[3, 13, 14])
    with Loader(dataset, 5, workers=backend, on_error="quarantine", quarantine=file) as loader:
        for epoch in range(2):
            assert taken(loader) == but(3, 13, 14)
            assert len(lines(file)) == 3 * (epoch + 1)
        plan = loader._session._agenda.plan
    places = {3: 0, 13: 10, 14: 10}
    expected = [
        {
            "index": index,
            "epoch": epoch,
            "error": f"ValueError: sample {index} is bad",
            "seed": plan.batch_seed(plan.batch(epoch, place)),
            "dataset": {"make": "tests.observe.faults:Patchy", "args": [40], "kwargs": {"bad": [3, 13, 14]}},
        }
        for epoch in range(2)
        for index, place in places.items()
    ]
    written = lines(file)
    for record in written:
        told = record.pop("traceback")
        assert told.startswith("Traceback (most recent call last):\n")
        assert told.endswith(f"ValueError: sample {record['index']} is bad\n")
        assert "faults.py" in told
    assert written == expected


def test_what_was_made_ahead_and_not_taken_is_not_written_down(tmp_path):
    file = tmp_path / "q.jsonl"
    with Loader(Patchy(40, [3, 8]), 5, workers=2, on_error="quarantine", quarantine=file) as loader:
        next(iter(loader))
    assert [record["index"] for record in lines(file)] == [3]


def test_by_default_it_lies_in_the_folder_where_the_loader_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Loader(Patchy(40), 5, on_error="quarantine") as loader:
        monkeypatch.chdir("/")
        list(loader)
    assert len(lines(tmp_path / "quarantine.jsonl")) == 1


def test_a_good_dataset_makes_no_file(tmp_path):
    file = tmp_path / "q.jsonl"
    with Loader(Rows(40), 5, on_error="quarantine", quarantine=str(file)) as loader:
        list(loader)
    assert not file.exists()


def test_any_text_makes_one_line_of_valid_json(tmp_path):
    class Wild(Rows):
        def __getitem__(self, index):
            raise ValueError('two\nlines, \u2028 a "quote", \ud800 half a character, \x00 and ' + "x" * 100_000)

    file = tmp_path / "q.jsonl"
    with Loader(Wild(3), 1, on_error="quarantine", quarantine=file, max_errors=1.0) as loader:
        list(loader)
    content = file.read_bytes()
    assert content.isascii()
    assert content.count(b"\n") == 3
    assert all("\ud800 half" in record["error"] for record in lines(file))


def test_several_loaders_may_append_to_one_file_at_once(tmp_path):
    file = tmp_path / "q.jsonl"
    script = (
        "import sys, stoker\n"
        "from tests.observe.faults import Patchy\n"
        "options = dict(on_error='quarantine', quarantine=sys.argv[1], max_errors=1.0, shard=(int(sys.argv[2]), 3))\n"
        "with stoker.Loader(Patchy(600, range(600)), 4, **options) as loader:\n"
        "    input()\n"
        "    list(loader)\n"
    )
    command = [sys.executable, "-c", script, str(file)]
    running = [subprocess.Popen([*command, str(shard)], stdin=subprocess.PIPE, text=True) for shard in range(3)]
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert Counter(record["index"] for record in lines(file)) == Counter(range(600))


@pytest.mark.parametrize("kind", ["a folder", "no such folder", "a full disk"])
def test_a_file_that_cannot_be_written_is_told_once_and_samples_are_skipped_all_the_same(kind, tmp_path, caplog):
    file = {"a folder": tmp_path, "no such folder": tmp_path / "none" / "q.jsonl", "a full disk": "/dev/full"}[kind]
    with Loader(Patchy(40, [3, 13, 33]), 5, workers=1, on_error="quarantine", quarantine=file) as loader:
        assert taken(loader) == but(3, 13, 33)
    (told,) = logged(caplog, f"cannot write to the quarantine file {file}: ")
    assert "Samples are skipped all the same." in told
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1


def test_the_dataset_is_told_such_that_it_can_be_made_again_or_not_at_all():
    here = "tests.observe.faults"

    def references(dataset):
        return IndexedSource.of(dataset).reference()

    def made(name, *args, **kwargs):
        return {"make": f"{here}:{name}", "args": list(args), "kwargs": kwargs}

    assert references(Patchy) == made("Patchy")
    assert references(functools.partial(Patchy, 4, bad=[1, 2])) == made("Patchy", 4, bad=[1, 2])
    assert references(functools.partial(Maker.of, 4)) == made("Maker.of", 4)
    assert references(but) == made("but")
    only_its_type = {
        "Patchy": [Patchy(), functools.partial(Patchy, bad=(1, 2)), functools.partial(Patchy, bad=list(range(5000)))],
        "Maker": [Maker()],
        "Maker.make": [Maker().make, functools.partial(Maker().make, 3)],
    }
    for name, datasets in only_its_type.items():
        for dataset in datasets:
            assert references(dataset) == {"type": f"{here}:{name}"}
    assert references(lambda: Patchy())["type"].endswith("<lambda>")
    assert references(np.arange(3)) == {"type": "numpy:ndarray"}
    assert references(functools.partial(Patchy, bad={1: 2})) == {"type": f"{here}:Patchy"}
