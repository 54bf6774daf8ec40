"""Files are listed in order, each once; what is not there is an early and clear error."""

from __future__ import annotations

import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.sources.files.listing import Listing, list_files
from stoker.sources.files.opening import ending, open_file, shown

TREE = ["b.jsonl", "a/2.jsonl", "a/1.jsonl", "a.jsonl", "a/c/3.txt", "_SUCCESS", ".hidden/x.jsonl", "a/_x", "a/.y"]
SEEN = ["a.jsonl", "a/1.jsonl", "a/2.jsonl", "a/c/3.txt", "b.jsonl"]


@pytest.fixture
def tree(tmp_path):
    for name in TREE:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "data"


def names(listing, folder):
    return [os.path.relpath(path, folder) for path in listing]


def test_a_folder_is_walked_without_what_is_hidden(tree):
    listing = list_files(tree)
    assert names(listing, tree) == SEEN
    assert listing.sizes.tolist() == [len(name) for name in SEEN]
    assert listing.stamps.tolist() == [os.stat(path).st_mtime_ns for path in listing]
    assert listing[-1] == listing[4] == str(tree / "b.jsonl")
    with pytest.raises(IndexError):
        listing[5]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.jsonl", ["a.jsonl", "b.jsonl"]),
        ("**/*.jsonl", ["a.jsonl", "a/1.jsonl", "a/2.jsonl", "b.jsonl"]),
        ("a/[12].jsonl", ["a/1.jsonl", "a/2.jsonl"]),
        ("?.jsonl", ["a.jsonl", "b.jsonl"]),
        ("*", ["_SUCCESS", "a.jsonl", "b.jsonl"]),
        ("a/1.jsonl", ["a/1.jsonl"]),
        ("_SUCCESS", ["_SUCCESS"]),
    ],
)
def test_patterns_and_single_files(tree, pattern, found):
    assert names(list_files(f"{tree}/{pattern}"), tree) == found


def test_several_entries_keep_their_order_and_each_file_comes_once(tree):
    entries = [tree / "b.jsonl", str(tree / "a"), f"{tree}/*.jsonl", tree / "a" / ".." / "b.jsonl"]
    expected = ["b.jsonl", "a/1.jsonl", "a/2.jsonl", "a/c/3.txt", "a.jsonl"]
    for given_as in (list, tuple, iter):
        listing = list_files(given_as(entries))
        assert names(listing, tree) == expected
        assert listing.sizes.tolist() == [len(name) for name in expected]


def test_a_relative_path_holds_wherever_the_process_goes(tree, monkeypatch):
    monkeypatch.chdir(tree.parent)
    listing = list_files("data/a")
    monkeypatch.chdir("/")
    assert listing[0] == str(tree / "a" / "1.jsonl")


def test_a_name_that_looks_like_a_pattern_or_is_no_text(tmp_path):
    for name in (b"a[1].txt", b"a\xff.txt", b"a?b.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"x")
    assert len(list_files(tmp_path / "a[1].txt")) == 1
    for path in list_files(tmp_path):
        with open_file(path) as file:
            assert file.read() == b"x"
        assert ending(path) == ("txt", "")


def test_links_are_followed_but_not_in_circles(tree, tmp_path):
    (tmp_path / "linked").symlink_to(tree)
    (tree / "a" / "round").symlink_to(tree)
    (tree / "z.txt").symlink_to(tree / "b.jsonl")
    assert names(list_files(tmp_path / "linked"), tmp_path / "linked") == [*SEEN, "z.txt"]
    (tree / "z.txt").unlink()
    (tree / "z.txt").symlink_to(tree / "gone")
    with pytest.raises(FileNotFoundError, match=r"z\.txt"):
        list_files(tree)


@pytest.mark.parametrize(
    ("files", "error", "told"),
    [
        ("{}/nothing", FileNotFoundError, "nothing"),
        ("{}/*.csv", FileNotFoundError, r"no files in .*/\*\.csv: .*pass files="),
        ("{}/empty", FileNotFoundError, r"no files in .*/empty: .*pass files="),
        (["{}/b.jsonl", "{}/*.csv"], FileNotFoundError, r"no files in .*/\*\.csv"),
        ("", ValueError, "empty"),
        ([], ValueError, "files is empty: pass files="),
        (3, TypeError, "of type int, .*pass files="),
        (None, TypeError, "of type NoneType"),
        (b"x", TypeError, "of type bytes"),
        ({"{}"}, TypeError, "of type set"),
        (["{}", 3], TypeError, "holds 3 of type int"),
        ("memory://nothing/here", FileNotFoundError, "memory://nothing/here"),
        ("memory://nothing/*.csv", FileNotFoundError, r"no files in memory://nothing/\*\.csv"),
        ("nonsense://user:secret@x/y", ValueError, "nonsense://x/y"),
    ],
)
def test_what_cannot_be_listed(tree, files, error, told):
    (tree / "empty").mkdir()
    fill = lambda entry: entry.format(tree) if isinstance(entry, str) else entry  # noqa: E731
    with pytest.raises(error, match=told) as caught:
        list_files(list(map(fill, files)) if isinstance(files, list) else fill(files))
    assert "secret" not in str(caught.value)


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    for name in TREE:
        system.pipe(f"/bucket/{name}", name.encode())
    yield system
    system.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("memory://bucket", SEEN),
        ("memory://bucket/", SEEN),
        ("memory://bucket/*.jsonl", ["a.jsonl", "b.jsonl"]),
        ("memory://bucket/?.jsonl", ["a.jsonl", "b.jsonl"]),
        ("memory://bucket/**/*.jsonl", ["a.jsonl", "a/1.jsonl", "a/2.jsonl", "b.jsonl"]),
        ("memory://bucket/a/1.jsonl", ["a/1.jsonl"]),
    ],
)
def test_urls_are_listed_as_folders_are(memory, url, found):
    listing = list_files(url)
    assert [path.removeprefix("memory://bucket/") for path in listing] == found
    assert listing.sizes.tolist() == [len(name) for name in found]
    assert listing.stamps.all()
    for path, name in zip(listing, found, strict=True):
        with open_file(path) as file:
            assert file.read() == name.encode()


def test_a_fingerprint_is_the_same_wherever_the_files_are(memory, tree, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    moved = tree.rename(tmp_path / "elsewhere" / "moved")
    assert list_files("memory://bucket").fingerprint() == list_files(moved).fingerprint()
    assert list_files("memory://bucket/a").fingerprint() == list_files(moved / "a").fingerprint()
    assert list_files("memory://bucket/a/1.jsonl").fingerprint() == list_files(moved / "a" / "1.jsonl").fingerprint()
    assert list_files("memory://bucket/*.jsonl").fingerprint() == list_files(f"{moved}/*.jsonl").fingerprint()
    assert list_files(moved).fingerprint() != list_files(moved / "a").fingerprint()


def test_files_in_an_archive(tree, tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in TREE:
            archive.write(tree / name, name)
    behind = f"::{tmp_path}/all.zip"
    for url, found in [("zip://" + behind, SEEN), ("zip://a/*.jsonl" + behind, ["a/1.jsonl", "a/2.jsonl"])]:
        listing = list_files(url)
        assert list(listing) == [f"zip://{name}{behind}" for name in found]
        with open_file(listing[0]) as file:
            assert file.read() == found[0].encode()
    fsspec.get_filesystem_class("zip").clear_instance_cache()


def test_what_changed_is_told(tree):
    before = list_files(tree)
    assert list_files(tree).changes_since(before) is None
    for name in ("n1.jsonl", "n2.jsonl"):
        (tree / name).write_text("")
    (tree / "b.jsonl").write_text("other")
    after = list_files(tree)
    assert str(after.changes_since(before)) == "2 files appeared (n1.jsonl, n2.jsonl), 1 changed (b.jsonl)"
    assert str(before.changes_since(after)) == "2 files vanished (n1.jsonl, n2.jsonl), 1 changed (b.jsonl)"
    assert after.fingerprint() != before.fingerprint()


def test_a_file_of_the_same_size_written_again_has_changed(tree):
    before = list_files(tree)
    os.utime(tree / "a.jsonl", ns=(1, 1))
    assert str(list_files(tree).changes_since(before)) == "1 file changed (a.jsonl)"


def test_many_changes_name_three(tree):
    before = list_files(tree)
    for number in range(1200):
        (tree / f"{number:04d}").touch()
    changes = list_files(tree).changes_since(before)
    assert str(changes) == "1,200 files appeared (0000, 0001, 0002, ...)"
    assert changes.appeared.count == 1200


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 2)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 2)),
)
def test_changes_are_those_of_a_naive_comparison(old, new):
    changes = made(new).changes_since(made(old))
    appeared, vanished = new.keys() - old.keys(), old.keys() - new.keys()
    changed = [key for key in new.keys() & old.keys() if -1 not in (new[key], old[key]) and new[key] != old[key]]
    counts = (changes.appeared.count, changes.vanished.count, changes.changed.count) if changes else (0, 0, 0)
    assert counts == (len(appeared), len(vanished), len(changed))


def made(sizes):
    """A listing of files of one letter."""
    ones = np.ones(len(sizes), np.int64)
    return Listing("".join(sizes).encode(), ones.cumsum(), ones * 0, np.array(list(sizes.values()), np.int64), ones * 0)


def test_it_travels(tree):
    listing = list_files(tree)
    copy = pickle.loads(pickle.dumps(listing))
    assert list(copy) == list(listing)
    assert copy.fingerprint() == listing.fingerprint()


def test_many_files_take_little_memory(tmp_path):
    folders = [tmp_path / f"part{number}" for number in range(20)]
    for folder in folders:
        folder.mkdir()
        for number in range(150):
            os.mknod(folder / f"shard-{number:06d}.jsonl.gz")
    tracemalloc.start()
    try:
        listing = list_files(tmp_path)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    path = len(listing.paths) / len(listing)
    assert len(listing) == 3_000
    assert kept / len(listing) < path + 60
    assert peak / len(listing) < 2.5 * path + 150


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("https://user:pass@host/a.csv?sig=secret", "https://host/a.csv"),
        ("zip://a?x.csv::https://u:p@h/b.zip?token=t", "zip://a::https://h/b.zip"),
        ("zip://a.csv::https://h/b.zip?token=t::x", "zip://a.csv::https://h/b.zip::x"),
        ("s3://bucket/a@b.csv", "s3://bucket/a@b.csv"),
        ("/data/who?/a@b.csv", "/data/who?/a@b.csv"),
        ("ftp://u:p@ss@h/x", "ftp://h/x"),
    ],
)
def test_secrets_are_not_shown(path, told):
    assert shown(path) == told


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.JSONL.GZ", ("jsonl", ".gz")),
        ("https://h/a.csv?x=b.json", ("csv", "")),
        ("zip://a.csv::s3://b/c.zip", ("csv", "")),
        ("simplecache::s3://b/c.parquet", ("parquet", "")),
        ("a", ("", "")),
    ],
)
def test_the_ending_says_the_form(path, kind):
    assert ending(path) == kind
