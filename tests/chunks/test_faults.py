"""Chunk files that cannot be read, workers that die over them, and files that come, go and change."""

from __future__ import annotations

import gzip
import json
import logging
import os
import signal
import time
from pathlib import Path

import pytest

from stoker import ChunkError, Chunks, Loader, Processes, Threads, TooManyErrors, WorkerDied
from stoker.testing import chaos
from tests.chunks.files import epochs, flat, load, numbers, write_chunks

SIZES = [6, 6, 6, 6]


@pytest.fixture
def folder(tmp_path):
    write_chunks(tmp_path / "data", SIZES)
    return tmp_path / "data"


@pytest.fixture
def corrupt(folder):
    """Its second file has half a line."""
    file = folder / "00001.jsonl"
    file.write_text(file.read_text()[:-8] + "\n")
    return file


def without(*files: int) -> list[int]:
    return [number for number in range(24) if number // 6 not in files]


@pytest.mark.parametrize("workers", [0, Threads(2), 2], ids=repr)
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_corrupt_file_is_an_error_with_its_path_and_position(folder, corrupt, workers, shuffle):
    with Loader(Chunks(folder, interleave=1), 4, workers=workers, shuffle=shuffle) as loader:
        with pytest.raises(ChunkError, match=r"00001\.jsonl.*line 6"):
            epochs(loader, 1)


@pytest.mark.parametrize("workers", [0, Threads(2), 2], ids=repr)
@pytest.mark.parametrize("shuffle", [False, True])
def test_by_on_error_it_is_left_out_and_written_down(folder, corrupt, workers, shuffle, tmp_path, caplog):
    quarantine = tmp_path / "bad.jsonl"
    found = load(
        folder, 4, 2, workers=workers, shuffle=shuffle, on_error="quarantine", quarantine=quarantine, max_errors=1
    )
    assert [sorted(flat(epoch)) for epoch in found] == [without(1)] * 2
    written = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [(line["index"], line["epoch"]) for line in written] == [(1, 0), (1, 1)]
    assert "00001.jsonl" in written[0]["error"]
    assert "line 6" in written[0]["error"]
    assert "Traceback" in written[0]["traceback"]
    assert any("skipped file 1 of epoch 0" in message and "00001.jsonl" in message for message in caplog.messages)


def test_what_was_left_out_before_a_resume_counts_once_though_its_group_is_read_again(folder, corrupt, tmp_path):
    """Contract: a resumed run leaves out, counts and writes down what an undisturbed one does."""
    quarantine, state, taken = tmp_path / "bad.jsonl", None, []
    for _ in range(5):
        options = {"on_error": "quarantine", "quarantine": quarantine, "max_errors": 1}
        with Loader(Chunks(folder), 4, shuffle=True, **options) as loader:
            if state is not None:
                loader.load_state_dict(state)
            taken += numbers(next(iter(loader)))
            state = json.loads(json.dumps(loader.state_dict()))
    assert sorted(taken) == without(1)
    assert [json.loads(line)["index"] for line in quarantine.read_text().splitlines()] == [1]


def test_too_many_are_an_error(folder, corrupt):
    (folder / "00002.jsonl").write_text("no JSON\n")
    with Loader(Chunks(folder, interleave=1), 4, on_error="skip", max_errors=1) as loader:
        with pytest.raises(TooManyErrors, match="2 of 4 files of epoch 0 failed; 1 may"):
            epochs(loader, 1)


def test_after_an_error_one_can_go_on(folder, corrupt):
    got = []
    with Loader(Chunks(folder, interleave=1), 3, shuffle=True, seed=2) as loader:
        iterator = iter(loader)
        errors = 0
        while True:
            try:
                got.append(numbers(next(iterator)))
            except ChunkError:
                errors += 1
                state = loader.state_dict()
            except StopIteration:
                break
    assert errors == 1
    assert sorted(flat(got)) == without(1)
    with Loader(Chunks(folder, interleave=1), 3, shuffle=True, seed=2) as loader:
        loader.load_state_dict(state)
        with pytest.raises(ChunkError):  # a state that was saved right then leads to it again
            epochs(loader, 1)


def test_a_file_that_was_cut_short(folder):
    whole = gzip.compress((folder / "00002.jsonl").read_bytes())
    (folder / "00002.jsonl").unlink()
    (folder / "00002.jsonl.gz").write_bytes(whole[:-4])
    with Loader(Chunks(folder, interleave=1), 4, shuffle=True) as loader:
        with pytest.raises(ChunkError, match=r"00002\.jsonl\.gz"):
            epochs(loader, 1)


def test_an_error_of_the_users_own_reader_keeps_its_cause(folder):
    def read(path):
        yield {"number": 1}
        raise ArithmeticError("mine")

    with Loader(Chunks(folder, read, interleave=1), 4, workers=2, shuffle=True) as loader:
        with pytest.raises(ChunkError, match=r"0000\d\.jsonl.*mine"):
            epochs(loader, 1)


def slow_read(path):
    time.sleep(0.01)
    with open(path) as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("start", ["nursery", "fork", "spawn"])
def test_whoever_is_killed_loses_nothing(tmp_path, start):
    """Contract: exactly once, whatever dies."""
    write_chunks(tmp_path / "data", [7] * 40)
    expected = load(tmp_path / "data", 5, 2, shuffle=True, interleave=2)
    with Loader(
        Chunks(tmp_path / "data", slow_read, interleave=2), 5, shuffle=True, workers=Processes(2, start=start)
    ) as loader:
        got, killed = [], 0
        for epoch in range(2):
            got.append([])
            for nth, batch in enumerate(loader):
                got[epoch].append(numbers(batch))
                if nth % 9 == 4 and loader.worker_pids:
                    os.kill(loader.worker_pids[nth % len(loader.worker_pids)], signal.SIGKILL)
                    killed += 1
    assert killed > 5
    assert got == expected


def deadly_read(path):
    if path.endswith("00002.jsonl"):
        os.kill(os.getpid(), signal.SIGKILL)
    return slow_read(path)


def test_a_file_that_kills_its_reader_is_named(folder, caplog):
    with Loader(Chunks(folder, deadly_read, interleave=1), 4, workers=2, shuffle=True) as loader:
        with pytest.raises(WorkerDied, match=r"00002\.jsonl killed its worker 3 times"):
            epochs(loader, 1)
    assert any("while working on" in message and "00002.jsonl" in message for message in caplog.messages)


@pytest.mark.parametrize("in_order", [True, False])
def test_or_left_out(folder, in_order, tmp_path):
    """Also where it is the last of its epoch, and the first of the next."""
    quarantine = tmp_path / "bad.jsonl"
    options = {"workers": 2, "on_error": "quarantine", "quarantine": quarantine, "in_order": in_order}
    with Loader(Chunks(folder, deadly_read, interleave=1), 4, shuffle=True, **options) as loader:
        assert [sorted(flat(epoch)) for epoch in epochs(loader, 6)] == [without(2)] * 6
    written = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [(line["index"], line["epoch"]) for line in written] == [(2, epoch) for epoch in range(6)]
    assert "00002.jsonl: WorkerDied" in written[0]["error"]


def hanging_read(path):
    if path.endswith("00002.jsonl"):
        time.sleep(100)
    return slow_read(path)


def test_a_file_whose_reader_hangs_is_left_out(folder):
    with Loader(
        Chunks(folder, hanging_read, interleave=1),
        4,
        workers=2,
        shuffle=True,
        timeout=0.3,
        max_deaths=1,
        on_error="skip",
    ) as loader:
        assert sorted(flat(epochs(loader, 1)[0])) == without(2)


def test_chaos(tmp_path):
    write_chunks(tmp_path / "data", [5] * 30)
    expected = load(tmp_path / "data", 4, 2, shuffle=True)
    with Loader(Chunks(tmp_path / "data", slow_read, interleave=1), 4, shuffle=True, workers=2, max_deaths=9) as loader:
        assert epochs(chaos(loader, faults=0.3, seed=1), 2) == expected


class TestChanges:
    """Files that appear, vanish or change between epochs are found, and said."""

    @pytest.mark.parametrize("workers", [0, Threads(2), 2], ids=repr)
    def test_a_new_epoch_reads_what_is_there_then(self, folder, caplog, workers):
        caplog.set_level(logging.WARNING)
        with Loader(Chunks(folder, interleave=1), 4, workers=workers) as loader:
            assert sorted(flat(epochs(loader, 1)[0])) == list(range(24))
            (folder / "more.jsonl").write_text('{"number": 24, "file": 4}\n')
            (folder / "00001.jsonl").unlink()
            with open(folder / "00000.jsonl", "a") as file:
                file.write('{"number": 25, "file": 0}\n')
            assert sorted(flat(epochs(loader, 1)[0])) == [*without(1), 24, 25]
        (message,) = [message for message in caplog.messages if "since the files were last listed" in message]
        for words in ("1 file appeared (more.jsonl", "00001.jsonl", "00000.jsonl"):
            assert words in message

    def test_one_that_vanishes_meanwhile_is_an_error_that_names_it(self, folder):
        with Loader(Chunks(folder, interleave=1), 6, shuffle=True) as loader:
            iterator = iter(loader)
            next(iterator)
            for file in folder.iterdir():
                file.unlink()
            with pytest.raises(FileNotFoundError, match=r"0000\d\.jsonl"):
                list(iterator)

    def test_none_left_is_an_error(self, folder):
        with Loader(Chunks(folder, interleave=1), 6) as loader:
            epochs(loader, 1)
            for file in folder.iterdir():
                file.unlink()
            with pytest.raises(FileNotFoundError):
                epochs(loader, 1)


class TestArguments:
    """What cannot be, is said when the loader is made."""

    def test_files(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            Loader(Chunks(tmp_path / "nowhere"), 4)
        with pytest.raises((ValueError, FileNotFoundError), match=r"\*\.jsonl"):
            Loader(Chunks(str(tmp_path / "*.jsonl")), 4)
        with pytest.raises(TypeError):
            Loader(Chunks(3), 4)

    @pytest.mark.parametrize(
        ("options", "words"),
        [({"interleave": 0}, "interleave=0"), ({"across_chunks": 1}, "across_chunks=1"), ({"read": "x"}, "read='x'")],
    )
    def test_of_chunks(self, folder, options, words):
        with pytest.raises((ValueError, TypeError), match=words):
            Chunks(folder, **options)

    def test_of_the_loader(self, folder):
        from stoker import Cache, Rotation

        with pytest.raises(ValueError, match="cache= needs a dataset with an index"):
            Loader(Chunks(folder, interleave=1), 4, cache=Cache(folder / "cache"))
        with pytest.raises(ValueError, match="rotation= needs a dataset with an index"):
            Loader(Chunks(folder, interleave=1), 4, rotation=Rotation(2))
        with pytest.raises(ValueError, match="interleave=n"):
            Loader(Chunks(folder, interleave=1), 4, shuffle=10)
        with pytest.raises(ValueError, match="across_chunks=True"):
            Loader(Chunks(folder, across_chunks=False), 4, shard=(0, 2))

    def test_an_ending_that_nobody_knows(self, tmp_path):
        (tmp_path / "a.xyz").write_text("?")
        with Loader(Chunks(tmp_path), 4) as loader:
            with pytest.raises(ValueError, match="read="):
                epochs(loader, 1)


def test_a_path_in_many_forms(folder):
    files = sorted(folder.iterdir())
    expected = load(folder, 4)
    for given in (str(folder), Path(folder), str(folder / "*.jsonl"), files, map(str, files), [str(folder)]):
        with Loader(Chunks(given), 4) as loader:
            assert epochs(loader, 2) == expected
