"""How many samples files have: told by metadata where there is some, and anew once a file has changed."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

from stoker import Chunks, Loader, split
from stoker.sources.files import parts
from stoker.sources.files.parts import Limits
from tests.chunks.files import epochs, flat
from tests.chunks.large_files import ROWS, WRITERS, write_jsonl, write_parquet


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Parts of some 300 bytes, so that small files are large."""
    monkeypatch.setattr(parts, "LIMITS", Limits(part=300, whole=600, large=2000))


class TestCounts:
    """Counts come from metadata instead of reading, where there is some."""

    @pytest.fixture
    def no_reading(self, monkeypatch):
        def read(*arguments, **options):
            raise AssertionError("a file was read to count its samples")

        for name in ("count_part", "count_samples", "read_part", "read_chunk"):
            monkeypatch.setattr(f"stoker.sources.files.readers.{name}", read)

    @pytest.mark.parametrize("form", ["parquet", "arrow", "npy"])
    def test_of_large_tables(self, tmp_path, form, no_reading):
        if form == "npy":
            np.save(tmp_path / "a.npy", np.zeros((ROWS, 3)))
        else:
            WRITERS[form](tmp_path / f"a.{form}", 0, ROWS)
        with Loader(Chunks(tmp_path), 10) as loader:
            assert len(loader) == 15

    @pytest.mark.parametrize("name", ["big.jsonl", "big.jsonl.gz", "big.csv", "big.txt.zst", "big.parquet"])
    def test_of_what_split_has_made(self, tmp_path, name, no_reading):
        if name.endswith(".parquet"):
            write_parquet(tmp_path / name, 0, ROWS)
        else:
            import fsspec

            with fsspec.open(tmp_path / name, "wt", compression="infer") as source:
                source.write("".join(f"{n}\n" for n in range(ROWS)))
        split(tmp_path / name, tmp_path / "chunks", count=10)
        with Loader(Chunks(tmp_path / "chunks"), 10) as loader:
            assert len(loader) == 15

    def test_not_of_files_that_have_changed_since(self, tmp_path):
        write_jsonl(tmp_path / "big.jsonl", 0, ROWS)
        first, *_ = split(tmp_path / "big.jsonl", tmp_path / "chunks", count=10)
        with open(first, "a") as chunk:
            chunk.write('{"number": 150, "file": 0}\n')
        (tmp_path / "chunks" / "more.jsonl").write_text('{"number": 151, "file": 0}\n')
        with Loader(Chunks(tmp_path / "chunks"), 10) as loader:
            assert sorted(flat(epochs(loader, 1)[0])) == list(range(152))

    def test_a_manifest_that_is_damaged_is_none(self, tmp_path):
        write_jsonl(tmp_path / "big.jsonl", 0, 30)
        split(tmp_path / "big.jsonl", tmp_path / "chunks", count=10)
        (tmp_path / "chunks" / ".split.json").write_text("{")
        with Loader(Chunks(tmp_path / "chunks"), 10) as loader:
            assert flat(epochs(loader, 1)[0]) == list(range(30))


def test_a_file_that_grows_between_epochs_is_cut_anew(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    path = tmp_path / "a.jsonl"
    write_jsonl(path, 0, 40)
    with Loader(Chunks(path), 8, shuffle=True) as loader:
        assert sorted(flat(epochs(loader, 1)[0])) == list(range(40))
        write_jsonl(path, 0, 120)
        assert sorted(flat(epochs(loader, 1)[0])) == list(range(120))
    assert any("changed" in message for message in caplog.messages)


def test_a_file_that_is_written_anew_with_the_same_size_is_counted_anew(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n" * 300)
    with Loader(Chunks(path), 8) as loader:
        assert sum(map(len, loader)) == 300
        path.write_text("another\n" * 150)
        os.utime(path, ns=(1, 1))
        assert sum(map(len, loader)) == 150
