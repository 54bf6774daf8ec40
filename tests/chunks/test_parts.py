"""Files of any size: a part of a file is what is read, mixed, dealt out to shards, left out and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import ChunkError, Chunks, Loader, StateError, Threads, TooManyErrors
from stoker.plan import check_sum
from stoker.sources.files import parts
from stoker.sources.files.parts import Limits
from tests.chunks.files import cut, epochs, flat, numbers, write_chunks
from tests.chunks.large_files import ROWS, WRITERS, part_count, write_jsonl, write_parquet

BACKENDS = pytest.mark.parametrize("backend", [0, Threads(3), 2], ids=repr)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Parts of some 300 bytes, so that small files are large."""
    monkeypatch.setattr(parts, "LIMITS", Limits(part=300, whole=600, large=2000))


@pytest.fixture(params=WRITERS)
def file(tmp_path, request):
    """One file of many parts."""
    path = tmp_path / f"big.{request.param}"
    WRITERS[request.param](path, 0, ROWS)
    return path


@BACKENDS
def test_in_order_it_is_as_if_it_were_read_whole(file, backend):
    """Contract: the same stream for any backend, and in order that of the file."""
    with Loader(Chunks(file), 7, workers=backend) as loader:
        assert part_count(loader) > 5
        assert len(loader) == -(-ROWS // 7)
        assert epochs(loader, 2) == [cut(list(range(ROWS)), 7)] * 2


@BACKENDS
def test_shuffled_each_sample_comes_once_and_mixes_with_those_of_other_parts(file, backend):
    with Loader(Chunks(file), 7, shuffle=True, seed=3) as loader:
        expected = epochs(loader, 2)
    with Loader(Chunks(file), 7, shuffle=True, seed=3, workers=backend) as loader:
        found = epochs(loader, 2)
    assert found == expected
    assert [sorted(flat(epoch)) for epoch in found] == [list(range(ROWS))] * 2
    assert found[0] != found[1]
    assert max(found[0][0]) - min(found[0][0]) > 14  # a batch is of several parts


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("in_order", [True, False])
def test_it_resumes_at_every_step(file, shuffle, in_order):
    """Contract: after load_state_dict, the stream goes on with the next batch that was not taken."""

    def make() -> Loader:
        workers = 0 if in_order else Threads(2)
        return Loader(Chunks(file, interleave=3), 8, shuffle=shuffle, in_order=in_order, workers=workers)

    with make() as loader:
        whole = epochs(loader, 1)[0]
    taken: list[list[int]] = []
    state = None
    while loader is not None:
        with make() as loader:
            if state is not None:
                loader.load_state_dict(state)
            batch = next(iter(loader), None)
            if batch is None:
                break
            taken.append(numbers(batch))
            state = json.loads(json.dumps(loader.state_dict()))
            if state["epoch"] == 1:
                break
    if in_order:
        assert taken == whole
    assert Counter(flat(taken)) == Counter(range(ROWS))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("shards", [2, 3, 4])
def test_shards_read_their_own_parts_and_together_everything(file, shuffle, shards):
    found = []
    for index in range(shards):
        with Loader(Chunks(file), 5, shuffle=shuffle, shard=(index, shards), even_shards=False) as loader:
            shares, count = loader._session._agenda.epochs[0].shares, len(loader._session._agenda.epochs[0].groups)
            assert len(shares) <= count // shards + 2
            found.append(epochs(loader, 1)[0])
    assert sorted(flat([batch for shard in found for batch in shard])) == list(range(ROWS))


def test_a_killed_worker_loses_nothing(file):
    """Contract: exactly once, whatever dies."""
    with Loader(Chunks(file, interleave=2), 4, shuffle=True) as loader:
        expected = epochs(loader, 2)
    got, killed, due = [], 0, 4
    with Loader(Chunks(file, interleave=2), 4, shuffle=True, workers=2) as loader:
        for nth, batch in enumerate(batch for _ in range(2) for batch in loader):
            got.append(numbers(batch))
            if nth >= due and loader.worker_pids:
                with contextlib.suppress(ProcessLookupError):  # the last kill was not noticed yet: with the next batch
                    os.kill(loader.worker_pids[0], signal.SIGKILL)
                    killed, due = killed + 1, nth + 12
    assert killed > 2
    assert got == [batch for epoch in expected for batch in epoch]


@given(
    st.lists(st.tuples(st.sampled_from(sorted(WRITERS)), st.integers(1, 80)), min_size=1, max_size=4),
    st.integers(1, 9),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=25)
def test_large_and_small_files_of_several_forms(files, size, interleave, shuffle, drop_last):
    with tempfile.TemporaryDirectory() as folder:
        first = 0
        for number, (form, rows) in enumerate(files):
            WRITERS[form](Path(folder, f"{number}.{form}"), first, rows)
            first += rows
        with Loader(
            Chunks(folder, interleave=interleave, columns=["number"]), size, shuffle=shuffle, drop_last=drop_last
        ) as loader:
            for found in epochs(loader, 2):
                full = first - first % size if drop_last else first
                assert len(found) == -(-full // size) == len(loader)
                assert all(len(batch) == size for batch in found[:-1])
                assert max(Counter(flat(found)).values(), default=1) == 1
                assert len(flat(found)) == full
                if not shuffle:
                    assert flat(found) == list(range(full))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_without_crossing_only_the_last_batch_of_a_file_is_short(tmp_path, shuffle, drop_last):
    """Tables are cut at multiples of the batch size, and lines not at all."""
    counts = {"0.parquet": 103, "1.arrow": 95, "2.jsonl": 61}
    first = 0
    for name, rows in counts.items():
        WRITERS[name.partition(".")[2]](tmp_path / name, first, rows)
        first += rows
    chunks = Chunks(tmp_path, columns=["number"], across_chunks=False)
    with Loader(chunks, 10, shuffle=shuffle, drop_last=drop_last) as loader:
        assert part_count(loader) > 8
        found = epochs(loader, 1)[0]
        assert len(loader) == len(found)
    files = np.searchsorted(np.cumsum(list(counts.values())), np.arange(first), side="right")
    assert all(len({int(files[n]) for n in batch}) == 1 for batch in found)
    short = [] if drop_last else [3, 5, 1]
    assert Counter(map(len, found)) == Counter([10] * 25 + short)
    if not shuffle and not drop_last:
        assert flat(found) == list(range(first))


class TestLeftOut:
    """What cannot be read is a part, not the file."""

    @pytest.fixture
    def damaged(self, tmp_path):
        """One line of 150 is none."""
        write_jsonl(tmp_path / "big.jsonl", 0, ROWS)
        lines = (tmp_path / "big.jsonl").read_text().splitlines(keepends=True)
        lines[100] = lines[100].replace("{", "(")
        (tmp_path / "big.jsonl").write_text("".join(lines))
        return tmp_path / "big.jsonl"

    @pytest.mark.parametrize("workers", [0, Threads(2), 2], ids=repr)
    def test_an_error_names_the_file_and_the_byte(self, damaged, workers):
        at = damaged.read_text().index("(")
        with Loader(Chunks(damaged), 4, workers=workers, shuffle=True) as loader:
            with pytest.raises(ChunkError, match=rf"big\.jsonl at byte {at:,}"):
                epochs(loader, 1)

    @pytest.mark.parametrize("shuffle", [False, True])
    def test_a_part_is_left_out_and_written_down(self, damaged, shuffle, tmp_path, caplog):
        quarantine = tmp_path / "bad.jsonl"
        options = {"on_error": "quarantine", "quarantine": quarantine, "max_errors": 1, "shuffle": shuffle}
        with Loader(Chunks(damaged), 4, **options) as loader:
            left = sorted(flat(epochs(loader, 1)[0]))
        assert 100 not in left
        assert ROWS - 20 < len(left) < ROWS
        (written,) = map(json.loads, quarantine.read_text().splitlines())
        assert written["what"] == "part"
        assert "big.jsonl (bytes 2," in written["error"]
        assert any("skipped part" in message and "big.jsonl (bytes 2," in message for message in caplog.messages)

    def test_max_errors_counts_parts(self, damaged):
        damaged.write_text(damaged.read_text().replace("{", "(", 30))
        with Loader(Chunks(damaged), 4, on_error="skip", max_errors=1) as loader:
            with pytest.raises(TooManyErrors, match=r"2 of \d+ parts of epoch 0 failed; 1 may"):
                epochs(loader, 1)

    def test_a_table_whose_metadata_is_damaged(self, tmp_path):
        write_parquet(tmp_path / "a.parquet", 0, ROWS)
        write_parquet(tmp_path / "b.parquet", ROWS, ROWS)
        (tmp_path / "b.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-8])
        with Loader(Chunks(tmp_path), 4, shuffle=True, on_error="skip") as loader:
            assert sorted(flat(epochs(loader, 1)[0])) == list(range(ROWS))
        with Loader(Chunks(tmp_path), 4, shuffle=True) as loader:
            with pytest.raises(ChunkError, match=r"b\.parquet"):
                epochs(loader, 1)


class TestStates:
    """A state leads to the same place, or is refused with words."""

    def saved(self, path, **options):
        with Loader(Chunks(path), 4, **options) as loader:
            next(iter(loader))
            return loader.state_dict()

    def old(self, state):
        """As it was before files were read in parts."""
        state = {key: value for key, value in state.items() if key != "parts"} | {"stoker_chunks": 1}
        return state | {"check": check_sum(state)}

    @pytest.mark.parametrize("shuffle", [False, True])
    def test_an_old_one_is_understood_where_no_file_is_cut(self, tmp_path, shuffle):
        write_chunks(tmp_path / "data", [3, 5, 7, 9])
        with Loader(Chunks(tmp_path / "data"), 4, shuffle=shuffle) as loader:
            whole = epochs(loader, 1)[0]
        state = self.old(self.saved(tmp_path / "data", shuffle=shuffle))
        with Loader(Chunks(tmp_path / "data"), 4, shuffle=shuffle) as loader:
            loader.load_state_dict(state)
            assert epochs(loader, 1)[0] == whole[1:]

    def test_or_where_an_epoch_begins(self, file):
        with Loader(Chunks(file), 4, shuffle=True) as loader:
            whole = epochs(loader, 2)
        with Loader(Chunks(file), 4, shuffle=True) as loader:
            epochs(loader, 1)
            state = self.old(loader.state_dict())
        with Loader(Chunks(file), 4, shuffle=True) as loader:
            loader.load_state_dict(state)
            assert epochs(loader, 1) == whole[1:]

    def test_else_it_is_refused(self, file):
        state = self.old(self.saved(file, shuffle=True))
        with Loader(Chunks(file), 4, shuffle=True) as loader:
            with pytest.raises(StateError, match=r"big\.\w+ are now read in parts.*set_epoch\(0\)"):
                loader.load_state_dict(state)

    def test_of_other_parts(self, file, monkeypatch):
        state = self.saved(file, shuffle=True)
        monkeypatch.setattr(parts, "LIMITS", Limits(part=450, whole=600))
        with Loader(Chunks(file), 4, shuffle=True) as loader:
            with pytest.raises(StateError, match="cut into other parts"):
                loader.load_state_dict(state)

    def test_of_a_file_that_is_cut_by_now(self, tmp_path, monkeypatch):
        write_chunks(tmp_path / "data", [30, 30])
        monkeypatch.setattr(parts, "LIMITS", Limits())
        state = self.saved(tmp_path / "data", shuffle=True)
        monkeypatch.setattr(parts, "LIMITS", Limits(part=300, whole=600))
        with Loader(Chunks(tmp_path / "data"), 4, shuffle=True) as loader:
            with pytest.raises(StateError, match="cut into other parts"):
                loader.load_state_dict(state)


@pytest.mark.parametrize("workers", [0, Threads(2)], ids=repr)
def test_closing_closes_the_files(tmp_path, workers):
    """Contract: after close, no descriptor remains, though readers are kept for the next slice of a row group."""
    path = tmp_path / "a.parquet"
    write_parquet(path, 0, ROWS)
    loader = Loader(Chunks(path), 8, shuffle=True, workers=workers)
    assert sorted(flat(epochs(loader, 1)[0])) == list(range(ROWS))
    loader.close()
    opened = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.exists()]
    assert str(path) not in opened
