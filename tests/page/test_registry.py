"""Who serves a page is known to this user alone, and forgotten when it ends, however it does."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from stoker.observe.page.registry import Entry, Registration, entries


def entry_of(pid: int, **changed) -> Entry:
    fields = vars(Entry.of_this_process("127.0.0.1", 1234, "secret")) | {"pid": pid} | changed
    return Entry(**fields)


def test_an_entry_is_there_until_its_end(registry):
    mine = Entry.of_this_process("127.0.0.1", 1234, "secret")
    registration = Registration(mine)
    assert entries() == [mine]
    registration.end()
    registration.end()
    assert entries() == []
    assert os.listdir(registry) == []


def test_nobody_else_can_read_it(registry):
    registration = Registration(entry_of(os.getpid()))
    (file,) = registry.iterdir()
    assert stat.S_IMODE(registry.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    registration.end()


def test_what_a_killed_process_left_is_removed(registry):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    Registration(entry_of(process.pid))
    assert entries() == []
    assert os.listdir(registry) == []


def test_another_process_of_the_same_number_is_told_by_its_start(registry):
    Registration(entry_of(os.getpid(), started=1))
    assert entries() == []
    assert os.listdir(registry) == []


def test_processes_of_another_container_are_left_alone(registry):
    Registration(entry_of(2**22, namespace="pid:[1]"))
    assert entries() == []
    assert len(os.listdir(registry)) == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"pid": 1}', json.dumps(vars(entry_of(os.getpid())) | {"port": "x"})]
)
def test_a_file_that_is_no_entry_is_passed_over(registry, text):
    Registration(entry_of(os.getpid())).end()
    (registry / "1.json").write_text(text)
    assert entries() == []


def test_a_link_is_not_followed(registry, tmp_path):
    Registration(entry_of(os.getpid())).end()
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps(vars(entry_of(os.getpid()))))
    (registry / "1.json").symlink_to(elsewhere)
    assert entries() == []


def test_a_folder_that_others_can_use_is_refused(registry):
    registry.mkdir()
    registry.chmod(0o777)
    with pytest.raises(OSError, match="this user alone"):
        entries()


def test_without_a_runtime_folder_one_of_the_users_own_is_made_in_the_temporary_one(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    registration = Registration(entry_of(os.getpid()))
    assert [entry.pid for entry in entries()] == [os.getpid()]
    registration.end()
    assert stat.S_IMODE((tmp_path / f"stoker-{os.geteuid()}").stat().st_mode) == 0o700
