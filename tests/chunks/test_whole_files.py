"""What cannot be cut into parts is read as a whole, and said to be so if it is large."""

from __future__ import annotations

import gzip
import json
import os
import re

import numpy as np
import pytest

from stoker import Chunks, Loader
from stoker.sources.files import parts
from stoker.sources.files.parts import Limits
from tests.chunks.files import epochs, flat
from tests.chunks.large_files import ROWS, part_count, write_jsonl


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Parts of some 300 bytes, so that small files are large."""
    monkeypatch.setattr(parts, "LIMITS", Limits(part=300, whole=600, large=2000))


class TestWhole:
    """What cannot be cut is read as a whole; if it is large, the log says why, and what to do."""

    def test_a_compressed_file(self, tmp_path, caplog):
        write_jsonl(tmp_path / "big.jsonl", 0, 3000)
        (tmp_path / "big.jsonl.gz").write_bytes(gzip.compress((tmp_path / "big.jsonl").read_bytes()))
        (tmp_path / "big.jsonl").unlink()
        size = (tmp_path / "big.jsonl.gz").stat().st_size
        with Loader(Chunks(tmp_path), 64) as loader:
            assert part_count(loader) == 1
            assert flat(epochs(loader, 2)[0]) == list(range(3000))
        (message,) = [message for message in caplog.messages if "read as a whole" in message]
        assert f"{size:,} bytes" in message
        assert "a .gz stream can only be read from its beginning" in message
        assert f"stoker split {tmp_path / 'big.jsonl.gz'} FOLDER --size 8MB" in message

    def test_a_small_one_goes_without_saying(self, tmp_path, caplog, monkeypatch):
        monkeypatch.setattr(parts, "LIMITS", Limits(part=300, whole=600, large=10_000))
        (tmp_path / "a.txt.gz").write_bytes(gzip.compress(os.urandom(900).hex().encode()))
        with Loader(Chunks(tmp_path), 64) as loader:
            epochs_of_text = [sum(map(len, loader))]
        assert epochs_of_text == [1]
        assert not caplog.messages

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("a.npy", "does not lie row by row: save it with np.save"),
            ("a.npz", r"\.npz is read as a whole: store it in smaller files"),
            ("a file.csv", r"quotes within fields.*: cut it once with: stoker split '\S*a file\.csv' FOLDER"),
        ],
    )
    def test_each_form_has_its_remedy(self, tmp_path, caplog, name, words):
        array = np.asfortranarray(np.arange(800).reshape(400, 2))
        if name == "a.npy":
            np.save(tmp_path / name, array)
        elif name == "a.npz":
            np.savez(tmp_path / name, array=array)
        else:
            (tmp_path / name).write_text("n,word\n" + '1,a "b" c\n' * 400)
        with Loader(Chunks(tmp_path), 100) as loader:
            assert len(loader) == 4
        (message,) = caplog.messages
        assert re.search(words, message)

    def test_lines_whose_batches_do_not_cross(self, tmp_path, caplog):
        write_jsonl(tmp_path / "a.jsonl", 0, ROWS)
        with Loader(Chunks(tmp_path, across_chunks=False), 4) as loader:
            assert part_count(loader) == 1
        assert any("read as a whole" in message and "pass across_chunks=True" in message for message in caplog.messages)

    def test_a_function_of_the_users_gets_whole_files(self, tmp_path, caplog):
        write_jsonl(tmp_path / "big.jsonl", 0, ROWS)
        paths = []

        def read(path):
            paths.append(path)
            with open(path) as lines:
                return [json.loads(line) for line in lines]

        with Loader(Chunks(tmp_path, read), 64, shuffle=True) as loader:
            assert sorted(flat(epochs(loader, 1)[0])) == list(range(ROWS))
        assert paths == [str(tmp_path / "big.jsonl")]
        assert any("read= gets a whole file" in message for message in caplog.messages)

    def test_when_memory_is_short_the_error_says_what_to_do(self, tmp_path):
        def read(path):
            raise MemoryError

        (tmp_path / "a.txt").write_text("line\n")
        with Loader(Chunks(tmp_path, read), 64, shuffle=True) as loader:
            with pytest.raises(MemoryError) as caught:
                epochs(loader, 1)
        assert any("a.txt is read as a whole" in note for note in caught.value.__notes__)
