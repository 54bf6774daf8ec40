"""PyLoader's stream: every sample once an epoch, in an order that follows from the seeds, whoever reads it."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.compat.pyloader import NumpyDataCollator
from stoker.compat.pyloader.run import crew
from tests.compat.chunked import Doubled, Noisy, Numbers, make, read, write_chunks

SIZES = [5, 0, 3, 8, 1, 4, 0]


@pytest.fixture
def folder(tmp_path):
    return write_chunks(tmp_path / "data", SIZES)


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})


def flat(batches):
    return [number for batch in batches for number in batch]


def test_batches_are_encoded_and_collated(folder):
    with make(folder) as loader:
        first = next(iter(loader))
    assert first["x"].tolist() == [0, 1, 2, 3]
    assert first["double"].tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("queue", [1, 2, 3, 10])
def test_batches_do_not_cross_the_borders_of_chunks(folder, queue):
    with make(folder, Numbers(3), max_queue_size=queue, num_epoch=2) as loader:
        assert read(loader) == 2 * [
            [0, 1, 2], [3, 4], [5, 6, 7], [8, 9, 10], [11, 12, 13], [14, 15], [16], [17, 18, 19], [20],
        ]  # fmt: skip


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    batch_size=st.integers(1, 10),
    epochs=st.integers(1, 3),
    shuffle=st.booleans(),
    shuffle_within=st.booleans(),
    seed=st.integers(-(2**70), 2**70),
)
def test_every_sample_comes_once_an_epoch(sizes, batch_size, epochs, shuffle, shuffle_within, seed):
    with TemporaryDirectory() as place:
        folder = write_chunks(Path(place), sizes)
        reader = Numbers(batch_size, shuffle_within, seed)
        options = {"num_epoch": epochs, "max_queue_size": 1, "shuffle": shuffle, "random_seed": seed}
        with make(folder, reader, **options) as loader:
            seen = [(loader.get_epoch(), batch["x"].tolist()) for batch in loader]
    for epoch in range(epochs):
        batches = [batch for of, batch in seen if of == epoch]
        assert sorted(flat(batches)) == list(range(sum(sizes)))
        assert sorted(map(len, batches)) == sorted(
            min(batch_size, size - start) for size in sizes for start in range(0, size, batch_size)
        )
        if not shuffle and not shuffle_within:
            assert flat(batches) == list(range(sum(sizes)))
    assert [epoch for epoch, _ in seen] == sorted(epoch for epoch, _ in seen)


@settings(max_examples=6)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 5), st.booleans(), st.booleans())
def test_the_stream_is_the_same_for_any_number_of_workers(sizes, batch_size, shuffle, shuffle_within):
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
        folder = write_chunks(Path(place), sizes)
        streams = []
        for queue in (1, 2, 4, 10):
            reader = Numbers(batch_size, shuffle=shuffle_within)
            with make(folder, reader, Noisy(), num_epoch=2, max_queue_size=queue, shuffle=shuffle) as loader:
                streams.append([{key: values.tolist() for key, values in batch.items()} for batch in loader])
    assert streams[1:] == streams[:1] * 3


def test_random_numbers_of_the_parts_follow_from_the_seed(folder):
    def noise(seed):
        with make(folder, None, Noisy(), num_epoch=2, max_queue_size=1, random_seed=seed) as loader:
            return flat(batch["noise"].tolist() for batch in loader)

    assert noise(1) == noise(1)
    assert len(set(noise(1) + noise(2))) == 4 * sum(SIZES)


@pytest.mark.parametrize("within", [False, True])
def test_each_shuffle_is_another_in_each_epoch_and_follows_from_its_seed(tmp_path, within):
    folder = write_chunks(tmp_path / "data", [30] if within else [1] * 30)

    def epochs(seed):
        reader = Numbers(30, shuffle=within, random_seed=seed)
        with make(folder, reader, num_epoch=3, max_queue_size=1, shuffle=not within, random_seed=seed) as loader:
            numbers = flat(read(loader))
        return [numbers[start : start + 30] for start in (0, 30, 60)]

    assert epochs(3) == epochs(3)
    orders = [*epochs(3), *epochs(4), list(range(30))]
    assert [order for order in orders if orders.count(order) > 1] == []


def test_chunks_of_a_size_are_shuffled_each_in_its_own_way(tmp_path):
    folder = write_chunks(tmp_path / "data", [20, 20])
    with make(folder, Numbers(20, shuffle=True), max_queue_size=1) as loader:
        first, second = read(loader)
    assert first != [number - 20 for number in second]


def test_the_order_does_not_depend_on_where_the_folder_is(tmp_path):
    streams = []
    for name in ("here", "there"):
        folder = write_chunks(tmp_path / name, SIZES)
        with make(folder, Numbers(shuffle=True), max_queue_size=1, shuffle=True) as loader:
            streams.append(read(loader))
    assert streams[0] == streams[1]


def test_folders_are_walked_but_hidden_files_are_left_out(tmp_path, monkeypatch):
    for number, name in enumerate(["b/2", "a", "b/.hidden", ".git/a", "b/1/deep", "c", ".a"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(str(number))
    monkeypatch.chdir(tmp_path.parent)
    for data_dir in (tmp_path, str(tmp_path), tmp_path.name):
        with make(data_dir, max_queue_size=2) as loader:
            monkeypatch.chdir("/")
            assert flat(read(loader)) == [1, 4, 0, 5]
        monkeypatch.chdir(tmp_path.parent)


def test_a_file_may_have_any_name(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")).write_text("1 2 3")
    with make(tmp_path, Numbers(3, shuffle=True), shuffle=True) as loader:
        assert sorted(flat(read(loader))) == [1, 2, 3]


# get_batch, get_epoch


@pytest.mark.parametrize("queue", [1, 10])
def test_get_batch_gives_what_a_loop_gives_and_then_none(folder, queue):
    with make(folder, num_epoch=2, max_queue_size=queue) as loader, make(folder, num_epoch=2) as other:
        batches = list(iter(loader.get_batch, None))
        assert loader.get_batch() is None
        assert [batch["x"].tolist() for batch in batches] == read(other)


def test_get_epoch_is_that_of_the_batch_that_was_given_last(folder):
    with make(folder, Numbers(100), num_epoch=3) as loader:
        assert loader.get_epoch() == 0
        assert [loader.get_epoch() for _ in loader] == [0] * 5 + [1] * 5 + [2] * 5
        assert loader.get_epoch() == 2


def test_get_batch_goes_on_after_a_break_and_a_loop_begins_anew(folder):
    with make(folder, Numbers(100), num_epoch=2) as loader:
        for batch in loader:
            assert batch["x"].tolist() == [0, 1, 2, 3, 4]
            break
        assert loader.get_batch()["x"].tolist() == [5, 6, 7]
        whole = read(loader)
        assert len(whole) == 10
        assert read(loader) == whole


def test_the_seeds_are_taken_as_they_are_when_a_loop_begins_anew(folder):
    with make(folder, Numbers(shuffle=True), shuffle=True, max_queue_size=1) as loader:
        assert read(loader) == read(loader)


# What the parts may give


class Arrays(Numbers):
    def read_file(self, path):
        samples, count = super().read_file(path)
        return [{"x": np.array(samples["x"])}, np.int64(count)]


def test_a_reader_may_give_arrays(folder):
    with make(folder, Arrays(), max_queue_size=1) as loader:
        assert flat(read(loader)) == list(range(21))


class Own(NumpyDataCollator, Doubled, Numbers):
    """All parts in one, and with attributes of its own."""

    offset = 7

    def batch_encode(self, batch_data):
        return {"x": [x + self.offset for x in batch_data["x"]]}


def test_the_parts_go_to_the_workers_as_they_are(folder):
    part = Own(batch_size=3)
    part.offset = 100
    with make(folder, part, part, part) as loader:
        assert flat(read(loader)) == list(range(100, 121))


def test_the_number_of_workers_does_not_exceed_cores_queue_or_chunks(three_cores):
    assert [crew(queue, 100) for queue in (1, 2, 3, 4, 5, 7, 10)] == [
        (0, 1), (1, 1), (2, 1), (3, 1), (3, 1), (3, 2), (3, 3),
    ]  # fmt: skip
    assert crew(10, 1) == (1, 9)
