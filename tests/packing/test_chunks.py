"""Packed rows of chunk files: a group of parts is a window."""

from __future__ import annotations

import functools
import json
from collections import Counter

import numpy as np
import pytest

import stoker
from stoker.testing import assert_deterministic, assert_resumable
from tests.packing.documents import Documents, all_tokens, check_segments, tokens_of
from tests.streams import epochs


@pytest.fixture
def folder(tmp_path):
    """100 documents in JSON lines, 7 to a file."""
    data = Documents()
    for first in range(0, 100, 7):
        rows = [{"input_ids": data[i].tolist(), "text": f"document {i}"} for i in range(first, min(first + 7, 100))]
        (tmp_path / f"{first:03}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def loader(files, batch_size=4, **options):
    options.setdefault("shuffle", True)
    options.setdefault("pack", stoker.Pack(24, keys="input_ids"))
    return stoker.Loader(stoker.Chunks(files, interleave=3), batch_size, **options)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("workers", [0, stoker.Threads(2)])
def test_each_token_of_the_files_comes_once_in_batches_of_one_size(folder, workers, shuffle):
    with loader(folder, workers=workers, shuffle=shuffle) as packed:
        for batches in epochs(packed, 2):
            assert tokens_of(batches, "input_ids") == all_tokens(Documents())
            check_segments(batches, "input_ids")
            assert [len(batch["input_ids"]) for batch in batches[:-1]] == [4] * (len(batches) - 1)
        with pytest.raises(TypeError, match="not known with pack="):
            len(packed)


def test_the_stream_is_the_same_for_any_workers_and_resumes_at_any_batch(folder):
    make = functools.partial(loader, folder)
    assert_deterministic(make, functools.partial(make, workers=stoker.Threads(3)), epochs=1)
    assert_resumable(make, epochs=1, resume_with=functools.partial(make, workers=stoker.Threads(2)))


def test_processes_give_the_same_stream(folder):
    make = functools.partial(loader, folder)
    assert_deterministic(make, functools.partial(make, workers=stoker.Processes(2)), epochs=1)


@pytest.mark.parametrize("shuffle", [True, False])
def test_shards_have_each_token_once_between_them_and_resume(folder, shuffle):
    found = Counter()
    for shard in range(3):
        make = functools.partial(loader, folder, shard=(shard, 3), even_shards=False, shuffle=shuffle)
        assert_resumable(make, epochs=1, steps=4)
        with make() as packed:
            found += tokens_of(list(packed), "input_ids")
    assert found == all_tokens(Documents())


def test_parquet_columns_are_packed(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = Documents()
    table = pyarrow.table({"input_ids": [data[i] for i in range(100)], "text": ["x"] * 100})
    parquet.write_table(table, tmp_path / "all.parquet")
    with loader(tmp_path / "all.parquet", workers=stoker.Threads(2)) as packed:
        batches = list(packed)
    assert tokens_of(batches, "input_ids") == all_tokens(data)
    assert {batch["input_ids"].dtype for batch in batches} == {np.dtype(np.int32)}


def test_a_function_that_reads_may_give_bare_sequences(folder):
    data = Documents()

    def read(path):
        first = int(path[-9:-6])
        yield from (data[index] for index in range(first, min(first + 7, 100)))

    with stoker.Loader(stoker.Chunks(folder, read), 4, pack=stoker.Pack(24), shuffle=True) as packed:
        assert tokens_of(list(packed)) == all_tokens(data)


def test_a_file_that_cannot_be_read_is_left_out(folder):
    (folder / "007.jsonl").write_text('{"input_ids": [1,')
    with loader(folder, on_error="skip") as packed:
        assert tokens_of(list(packed), "input_ids") == all_tokens(
            Documents(), [index for index in range(100) if index // 7 != 1]
        )


def test_a_sample_that_cannot_be_packed_is_an_error_that_names_its_files(folder):
    (folder / "007.jsonl").write_text('{"input_ids": [[1], [2]]}\n')
    with loader(folder) as packed, pytest.raises(stoker.CollateError, match="and no sequence of numbers") as caught:
        list(packed)
    assert any("007.jsonl" in note for note in caught.value.__notes__)


def test_what_does_not_go_together_is_refused(folder):
    pack = stoker.Pack(24, keys="input_ids")
    with pytest.raises(ValueError, match="across_chunks=False"):
        stoker.Loader(stoker.Chunks(folder, across_chunks=False), 4, pack=pack)
    with pytest.raises(ValueError, match="Pass even_shards=False"):
        loader(folder, shard=(0, 2))
    with stoker.Loader(stoker.Chunks(folder, interleave=3), 4, shuffle=True, collate=list) as plain:
        next(iter(plain))
        state = plain.state_dict()
    with pytest.raises(stoker.StateError, match="pack_length=None and this loader has pack_length=24"):
        loader(folder).load_state_dict(state)
