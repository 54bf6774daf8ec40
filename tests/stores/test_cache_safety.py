"""A cache's files are the user's own: nobody else reads them, and no link leads a write elsewhere."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stoker import Cache, CacheError, Inline, Loader, Processes
from stoker.stores.cache_file import CacheFile
from stoker.stores.cache_folder import holding
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from tests.cli.running import run
from tests.stores.caching import Counted, assert_whole, calls, expected, once
from tests.streams import assert_same, epochs

SOMEBODY = 65_533  # a user's number that nobody has
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")


def fill(dataset, path, **options):
    with Loader(dataset, 4, cache=Cache(path, **options)) as loader:
        return epochs(loader, 1)


def mode(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "precious"
    file.write_bytes(b"mine" * 10_000)
    yield file
    assert file.read_bytes() == b"mine" * 10_000


# Links, and what else may lie in the place of a file

NAMES = ["about.json", "lock", "all.samples"]
KINDS = ["symbolic link", "broken link", "hard link", "pipe", "folder", "socket"]


def put(kind: str, place: Path, victim: Path) -> None:
    place.unlink(missing_ok=True)
    if kind == "symbolic link":
        place.symlink_to(victim)
    elif kind == "broken link":
        place.symlink_to(victim.with_name("none"))
    elif kind == "hard link":
        place.hardlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        os.mknod(place, 0o600 | stat.S_IFSOCK)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_link_in_the_place_of_a_file_is_an_error_in_the_constructor(name, kind, path, victim):
    fill(Counted(12), path)
    put(kind, path / name, victim)
    with pytest.raises(CacheError, match=rf"{name} is not what Stoker has written there: .*stoker cache rm"):
        Loader(Counted(12), 4, cache=Cache(path))
    assert not victim.with_name("none").exists()


@pytest.mark.parametrize("workers", [Inline(), Processes(1)], ids=repr)
@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "pipe"])
@pytest.mark.parametrize("name", NAMES)
def test_and_so_is_one_that_comes_later(name, kind, workers, path, victim):
    """Between the constructor and the first batch."""
    with Loader(Counted(12), 4, workers=workers, cache=Cache(path)) as loader:
        path.mkdir()
        put(kind, path / name, victim)
        with pytest.raises(CacheError, match="is not what Stoker has written there"):
            next(iter(loader))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_stoker_cache_rm_removes_the_link_and_not_what_it_leads_to(name, kind, path, victim):
    fill(Counted(12), path)
    put(kind, path / name, victim)
    assert run("cache", "ls", path).returncode in (0, 2)
    done = run("cache", "rm", path)
    if kind == "folder":
        assert (path / name).is_dir()
    else:
        assert done.returncode == 0, done
        assert not path.exists()


def test_names_of_new_files_cannot_be_known_beforehand(path, victim):
    """``about.json`` is written under another name first."""
    path.mkdir()
    for name in ("about.json.new", "about.json.tmp"):
        (path / name).symlink_to(victim)
    fill(Counted(12), path)
    assert sorted(os.listdir(path)) == ["about.json", "all.samples", "lock"]
    assert json.loads((path / "about.json").read_text())["codec"] == "safe"


def test_a_path_that_is_a_link_of_the_users_is_followed(tmp_path, path, log):
    (tmp_path / "real").mkdir()
    path.symlink_to(tmp_path / "real")
    fill(Counted(12, log), path)
    fill(Counted(12, log), path)
    assert calls(log) == once(12)
    assert_whole(tmp_path / "real", 12)


# Whose it is


def test_a_folder_that_all_can_write_to_is_an_error_with_the_remedy(path):
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(CacheError, match=r"not a safe folder for a cache: every user .* can write to it.*chmod o-w"):
        Loader(Counted(12), 4, cache=Cache(path))
    path.chmod(0o1777)  # as /tmp is
    fill(Counted(12), path)


@needs_root
@pytest.mark.parametrize("bits", [0o700, 0o755, 0o775, 0o770])
def test_a_folder_of_another_user_is_an_error_with_the_remedy(bits, path):
    path.mkdir()
    os.chown(path, SOMEBODY, SOMEBODY)
    path.chmod(bits)
    with pytest.raises(CacheError, match=rf"belongs to another user \({SOMEBODY}, .*chmod 2770.*folder of your own"):
        Loader(Counted(12), 4, cache=Cache(path))


@needs_root
@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_another_user_is_an_error(name, path):
    fill(Counted(12), path)
    os.chown(path / name, SOMEBODY, SOMEBODY)
    with pytest.raises(CacheError, match=rf"{name} is not what .* it belongs to another user \({SOMEBODY}"):
        Loader(Counted(12), 4, cache=Cache(path))


@needs_root
def test_stoker_cache_works_on_caches_of_others_as_far_as_the_system_lets_it(path):
    fill(Counted(12), path)
    for one in (path, *path.iterdir()):
        os.chown(one, SOMEBODY, SOMEBODY)
    for command in ("ls", "verify", "rm"):
        assert run("cache", command, path).returncode == 0
    assert not path.exists()


@needs_root
def test_a_folder_that_is_shared_with_a_group_may_be_anybodys_in_it(path, log):
    path.mkdir()
    os.chown(path, SOMEBODY, os.getegid())
    path.chmod(0o2770)
    fill(Counted(12, log), path)
    assert {name: mode(path / name) for name in os.listdir(path)} == dict.fromkeys(NAMES, 0o660)
    for name in NAMES:
        os.chown(path / name, SOMEBODY, os.getegid())
    fill(Counted(12, log), path)
    assert calls(log) == once(12)
    os.chown(path, SOMEBODY, SOMEBODY)
    path.chmod(0o2770)
    with pytest.raises(CacheError, match="belongs to another user"):
        Loader(Counted(12), 4, cache=Cache(path))


# Who may read it


@pytest.mark.parametrize("umask", ["000", "022", "077"])
def test_folder_and_files_are_for_this_user_alone_whatever_the_umask(umask, path):
    program = (
        "import os, sys, numpy as np, stoker\n"
        f"os.umask(0o{umask})\n"
        "with stoker.Loader(np.arange(6), 3, workers=2, cache=stoker.Cache(sys.argv[1])) as loader: list(loader)\n"
    )
    subprocess.run([sys.executable, "-c", program, path / "new"], check=True, timeout=60)
    assert mode(path / "new") == 0o700
    assert {name: mode(path / "new" / name) for name in NAMES} == dict.fromkeys(NAMES, 0o600)


def test_files_that_were_open_to_others_are_closed_to_them(path):
    fill(Counted(12), path)
    for name in NAMES:
        (path / name).chmod(0o666)
    with Loader(Counted(12), 4, cache=Cache(path)) as loader:
        assert_same(epochs(loader, 1), expected(Counted(12), Cache(path), 1))
    assert {name: mode(path / name) for name in NAMES} == dict.fromkeys(NAMES, 0o600)


def test_a_generation_is_never_opened_through_a_link(path, victim):
    """Whoever comes to it, by whatever way."""
    path.mkdir()
    (path / "all.samples").symlink_to(victim)
    with holding(str(path)), pytest.raises(CacheError, match="symbolic link"):
        CacheFile(
            str(path / "all.samples"), 3, RecordEncoder("safe"), RecordDecoder("safe", copies=True), None, 1e9, print
        )


# Secrets

URL = "postgresql://me:hunter2@db.example/images?sslkey=a&token=abcdefgh"


class Table:
    def __init__(self, url, password=None, options=None, key="image"):
        self.url, self._password, self.options, self.key = url, password, options, key

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return np.arange(3) + index


SECRETS = {
    "a URL": Table(URL),
    "a name": Table("a", password="hunter2"),
    "a dict": Table("a", options={"nested": [{"api_key": "hunter2"}], "auth": ("me", "hunter2")}),
    "bytes": Table("a", password=b"hunter2"),
    "a number": Table("a", options={"pwd": 4711_0815}),
    "an array of bytes": Table("a", password=bytearray(b"hunter2")),
    "a header": Table("a", options={"headers": ["Authorization: Bearer hunter2"]}),
    "a token": Table("gR8xQ2mZ0pLk7VtY3wBn-hunter2"),
    "a key": Table("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_are_not_written_down(kind, path):
    fill(SECRETS[kind], path)
    written = (path / "about.json").read_text()
    assert "hunter2" not in written
    assert "abcdefgh" not in written
    assert "47110815" not in written
    assert "<redacted>" in written
    shown = run("cache", "ls", path)
    assert "hunter2" not in shown.stdout
    fill(SECRETS[kind], path)  # and it is known again


def test_another_secret_is_another_dataset(path):
    """It may be what tells two datasets apart, as ``key`` does here."""
    fill(Table("a", key="image"), path)
    with pytest.raises(CacheError, match=r"is the cache of another dataset. Both are(.|\n)*what is redacted") as caught:
        Loader(Table("a", key="label"), 4, cache=Cache(path))
    assert "label" not in str(caught.value)
    assert "image" not in str(caught.value)


def test_what_tells_secrets_apart_is_salted(tmp_path):
    """So that no list of digests of passwords would find them."""
    told = []
    for name in ("a", "b"):
        fill(Table("a", password="hunter2"), tmp_path / name)
        told.append(json.loads((tmp_path / name / "about.json").read_text()))
    assert told[0]["dataset"] == told[1]["dataset"]
    assert told[0]["secrets"] != told[1]["secrets"]


def test_without_secrets_nothing_is_kept_of_them(path):
    fill(Counted(12), path)
    assert json.loads((path / "about.json").read_text())["secrets"] == ""
