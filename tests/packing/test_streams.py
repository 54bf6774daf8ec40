"""Packed rows: each token once, in batches of equal size, the same stream wherever it is made."""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import pytest

import stoker
from stoker.testing import assert_deterministic, assert_same
from tests.packing.documents import Documents, Records, all_tokens, check_segments, loader, tokens_of
from tests.streams import epochs


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("workers", [0, stoker.Threads(2)])
def test_each_token_comes_once_in_rows_of_one_length_and_batches_of_one_size(workers, in_order):
    with loader(workers=workers, in_order=in_order) as packed:
        for batches in epochs(packed, 2):
            assert tokens_of(batches) == all_tokens(Documents())
            check_segments(batches)
            assert [len(batch["tokens"]) for batch in batches[:-1]] == [4] * (len(batches) - 1)
            assert 1 <= len(batches[-1]["tokens"]) <= 4
            assert {array.shape[1] for batch in batches for array in batch.values()} == {24}


def test_the_stream_is_the_same_for_any_backend_and_number_of_workers():
    backends = [stoker.Threads(1), stoker.Threads(3), stoker.Processes(2)]
    assert_deterministic(loader, *(functools.partial(loader, workers=workers) for workers in backends))


def test_epochs_are_packed_in_other_orders_and_come_again():
    with loader() as packed:
        first, second = epochs(packed, 2)
        packed.set_epoch(0)
        (again,) = epochs(packed, 1)
    assert_same(again, first)
    assert [batch["tokens"].tolist() for batch in first] != [batch["tokens"].tolist() for batch in second]


def test_windows_follow_the_order_of_the_plan():
    """Not shuffled, the samples of a window are packed together, and windows come one after the other."""
    data = Documents()
    with loader(data, batch_size=1, shuffle=False) as packed:
        rows = [batch["tokens"][batch["segment_ids"] > 0] // 1000 for batch in packed]
    windows = [sorted(set((row // 16).tolist())) for row in rows]
    assert windows == sorted(windows)
    assert {len(window) for window in windows} == {1}


def test_drop_last_drops_rows_that_fill_no_batch_and_no_window():
    with loader(batch_size=6) as packed, loader(batch_size=6, drop_last=True) as dropping:
        (batches,), (full,) = epochs(packed, 1), epochs(dropping, 1)
    assert len(batches[-1]["tokens"]) < 6
    assert_same(full, batches[:-1])


def test_without_a_batch_size_each_row_comes_by_itself():
    with loader() as packed, loader(batch_size=None) as single:
        (batches,), (rows,) = epochs(packed, 1), epochs(single, 1)
    assert Counter(row["tokens"].tobytes() for row in rows) == Counter(
        row.tobytes() for batch in batches for row in batch["tokens"]
    )
    assert {array.shape for row in rows for array in row.values()} == {(24,)}


@pytest.mark.parametrize("count", [2, 3])
def test_each_shard_packs_its_own_samples_and_together_they_have_each_token_once(count):
    found = Counter()
    for shard in range(count):
        with loader(shard=(shard, count), even_shards=False) as packed:
            found += tokens_of(list(packed))
    assert found == all_tokens(Documents())


def test_shards_have_different_numbers_of_batches_so_that_even_ones_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"shard=\(0, 2\) with pack=.* Pass even_shards=False"):
        loader(shard=(0, 2))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="Pass even_shards=False"):
        loader(shard="auto")


def test_keys_of_dicts_are_packed_alongside_and_others_left_out():
    pack = stoker.Pack(24, keys=("input_ids", "labels"), pad={"labels": -100}, window=16)
    with loader(Records(), pack=pack, workers=stoker.Threads(2)) as packed:
        batches = list(packed)
    assert tokens_of(batches, "input_ids") == all_tokens(Documents())
    for batch in batches:
        assert list(batch) == ["input_ids", "labels", "segment_ids", "position_ids"]
        used = batch["segment_ids"] > 0
        assert (batch["labels"] == np.where(used, -batch["input_ids"], -100)).all()


@pytest.mark.parametrize(
    ("long", "kept"), [("truncate", lambda size: min(size, 10)), ("drop", lambda size: size * (size <= 10))]
)
def test_long_sequences_are_truncated_or_dropped_as_asked(long, kept):
    data = Documents()
    with loader(data, pack=stoker.Pack(10, long=long, window=16)) as packed:
        found = tokens_of(list(packed))
    assert found == Counter(token for one in range(len(data)) for token in data[one][: kept(len(data[one]))].tolist())


def test_tensors_come_as_tensors_also_where_rows_of_two_windows_are_joined():
    torch = pytest.importorskip("torch")
    data = [torch.arange(size) for size in Documents().lengths]
    with loader(data) as packed:
        assert {(type(one), len(one.shape)) for batch in packed for one in batch.values()} == {(torch.Tensor, 2)}


def test_batches_can_be_torch_tensors_of_arrays():
    torch = pytest.importorskip("torch")
    with loader(to="torch") as packed:
        batches = list(packed)
    assert {type(one) for batch in batches for one in batch.values()} == {torch.Tensor}
    assert tokens_of(batches) == all_tokens(Documents())


def test_batches_are_moved_to_a_device_ahead():
    with loader(workers=stoker.Threads(2)) as plain, loader(workers=stoker.Threads(2), to_device=dict) as moved:
        assert_same(list(moved), list(plain))


def test_a_factory_makes_the_dataset_in_workers():
    with loader(functools.partial(Documents, 40), workers=stoker.Threads(2)) as packed, loader(Documents(40)) as plain:
        assert_same(list(packed), list(plain))


def test_a_dataset_that_has_grown_is_packed_as_a_whole_in_the_next_epoch():
    data = Documents(40)
    with loader(data) as packed:
        list(packed)
        data.lengths += [5, 6, 7]
        assert tokens_of(list(packed)) == all_tokens(data)


@pytest.mark.parametrize("lengths", [[], [0], [0] * 50, [0] * 20 + [3], [100], [24] * 33])
def test_edges(lengths):
    data = Documents(0)
    data.lengths = lengths
    with loader(data) as packed:
        for batches in epochs(packed, 2):
            assert tokens_of(batches) == all_tokens(data)


def test_a_cache_keeps_samples_that_are_packed(tmp_path):
    made = []

    class Counting(Documents):
        def __getitem__(self, index):
            made.append(index)
            return super().__getitem__(index)

    with loader() as plain, loader(Counting(), cache=stoker.Cache(tmp_path)) as cached:
        assert_same(epochs(cached, 2), epochs(plain, 2))
    assert Counter(made) == Counter(range(100))


def test_rows_of_2048_use_97_percent_of_log_normal_lengths_over_an_epoch():
    rng = np.random.default_rng(0)
    data = [np.zeros(size, np.uint16) for size in rng.lognormal(6, 1, 3000).astype(int)]
    with stoker.Loader(data, 8, shuffle=True, pack=stoker.Pack(2048)) as packed:
        batches = list(packed)
    used = sum(int((batch["segment_ids"] > 0).sum()) for batch in batches)
    assert used == sum(map(len, data))
    assert used >= 0.97 * sum(batch["tokens"].size for batch in batches)


@pytest.mark.parametrize("as_tensors", [False, True])
def test_a_number_is_repeated_for_each_token_of_its_sample(as_tensors):
    torch = pytest.importorskip("torch")
    make = torch.arange if as_tensors else np.arange
    samples = [{"tokens": make(size), "label": label} for size, label in [(3, 5), (0, 6), (7, 8), (2, 9)]]
    with stoker.Loader(samples, 4, pack=stoker.Pack(5, keys=("tokens", "label"))) as loader:
        (batch,) = loader
    assert batch["label"].tolist() == [[5, 5, 5, 8, 8], [8, 8, 8, 8, 8], [9, 9, 0, 0, 0]]
    assert batch["segment_ids"].tolist() == [[1, 1, 1, 2, 2], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]
    assert isinstance(batch["label"], torch.Tensor) == as_tensors
