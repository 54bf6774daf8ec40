"""What the training process changes in its dataset arrives with the next epoch."""

from __future__ import annotations

import functools
import logging

import numpy as np
import psutil
import pytest

from stoker import Cache, CacheError, Chunks, Inline, Loader, Processes, Rotation, Threads, stream
from tests.workers.changing import Scaled, read

WITH_COPIES = [Processes(2), Processes(2, start="fork"), Processes(2, start="spawn")]
ALL = [Inline(), Threads(2), *WITH_COPIES]


def inline(dataset, **options):
    with Loader(dataset, 4, **options) as loader:
        return read(loader)


@pytest.mark.parametrize("workers", ALL, ids=repr)
def test_what_changes_between_constructor_and_first_batch_arrives_whole(workers):
    dataset = Scaled()
    with Loader(dataset, 4, workers=workers) as loader:
        dataset.factor = 10
        dataset.values[:] = dataset.values[::-1].copy()
        assert read(loader) == inline(dataset)


def set_factor(dataset):
    dataset.factor += 1


def write_into_array(dataset):
    dataset.values[3] = 99


def assign_array(dataset):
    dataset.values = dataset.values + 5


def write_into_list(dataset):
    dataset.names[-1] = 1000


def set_transform(dataset):
    dataset.transform = functools.partial(np.add, 7)


def grow(dataset):
    dataset.values = np.append(dataset.values, 5)
    dataset.names.append(0)


@pytest.mark.parametrize("workers", WITH_COPIES, ids=repr)
def test_what_changes_between_epochs_arrives_with_the_next_one(workers):
    dataset = Scaled()
    with Loader(dataset, 4, workers=workers) as loader:
        for change in (set_factor, write_into_array, assign_array, write_into_list, set_transform, grow):
            assert read(loader) == inline(dataset)
            change(dataset)
        assert read(loader) == inline(dataset)


@pytest.mark.parametrize("change", [set_factor, assign_array, set_transform], ids=lambda change: change.__name__)
def test_what_is_assigned_between_epochs_reaches_what_threads_have_prefetched(change):
    dataset = Scaled()
    with Loader(dataset, 4, workers=Threads(2)) as loader:
        for _ in range(3):
            expected = inline(dataset)
            assert read(loader) == expected
            loader.warm_up()
            change(dataset)


def test_a_dataset_within_a_dataset_may_change():
    class Every:
        def __init__(self, dataset, step):
            self.dataset, self.step = dataset, step

        def __len__(self):
            return len(self.dataset) // self.step

        def __getitem__(self, index):
            return self.dataset[index * self.step]

    inner = Scaled()
    with Loader(Every(inner, 2), 4, workers=1) as loader:
        read(loader)
        inner.factor = 3
        assert read(loader) == inline(Every(inner, 2))


def test_a_collate_function_may_change():
    state = {"add": 0}

    def collate(samples):
        return np.array(samples) + state["add"]

    with Loader(list(range(8)), 4, workers=1, collate=collate) as loader:
        assert read(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        state["add"] = 100
        assert read(loader) == [[100, 101, 102, 103], [104, 105, 106, 107]]


@pytest.mark.parametrize("workers", [Inline(), Threads(1), Processes(1)], ids=repr)
def test_a_dataset_may_grow_and_shrink_between_epochs(workers):
    dataset = list(range(6))
    with Loader(dataset, 4, workers=workers) as loader:
        assert (len(loader), read(loader)) == (2, [[0, 1, 2, 3], [4, 5]])
        dataset += [6, 7, 8]
        assert (len(loader), read(loader)) == (3, [[0, 1, 2, 3], [4, 5, 6, 7], [8]])
        del dataset[2:]
        assert (read(loader), len(loader)) == ([[0, 1]], 1)


def test_workers_stay_where_nothing_has_changed():
    dataset = Scaled()
    with Loader(dataset, 4, workers=2) as loader:
        read(loader)
        before = loader.worker_pids
        read(loader)
        assert before == loader.worker_pids != []


def test_a_change_starts_workers_anew_but_not_the_nursery():
    dataset = Scaled()
    with Loader(dataset, 4, workers=1) as loader:
        read(loader)
        nurseries = {process.ppid() for process in map(psutil.Process, loader.worker_pids)}
        workers = loader.worker_pids
        dataset.factor = 2
        read(loader)
        assert {process.ppid() for process in map(psutil.Process, loader.worker_pids)} == nurseries
        assert loader.worker_pids != workers


def test_a_change_in_the_middle_of_an_epoch_waits_for_the_next_one():
    dataset = Scaled()
    expected = inline(dataset)
    with Loader(dataset, 4, workers=2) as loader:
        batches = iter(loader)
        taken = [next(batches).tolist()]
        dataset.factor = 50
        taken += [batch.tolist() for batch in batches]
        assert taken == expected
        assert read(loader) == inline(dataset)


def test_a_state_that_was_saved_before_a_change_goes_on_after_it():
    dataset = Scaled()
    with Loader(dataset, 4, workers=2) as loader:
        next(iter(loader))
        state = loader.state_dict()
        dataset.factor = 2
        loader.load_state_dict(state)
        assert read(loader) == inline(dataset)[1:]


def test_what_changes_arrives_with_a_rotation():
    dataset = Scaled()
    with Loader(dataset, 4, workers=2, rotation=Rotation(2)) as loader:
        read(loader)
        dataset.factor = 2
        with Loader(dataset, 4, rotation=Rotation(2)) as oracle:
            read(oracle)
            assert read(loader) == read(oracle)


class Configured(Scaled):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor


def test_a_cache_is_refused_once_an_argument_of_its_dataset_has_changed(tmp_path):
    dataset = Configured(1)
    with Loader(dataset, 4, workers=1, cache=Cache(tmp_path / "cache")) as loader:
        read(loader)
        dataset.factor = 2
        for _ in range(2):
            with pytest.raises(CacheError):
                iter(loader)
        dataset.factor = 1
        assert read(loader) == inline(dataset)


def test_what_else_changes_behind_a_cache_is_said(tmp_path, caplog):
    dataset = Configured(1)
    before = inline(dataset)
    with Loader(dataset, 4, workers=1, cache=Cache(tmp_path / "cache")) as loader:
        read(loader)
        dataset.values += 1
        with caplog.at_level(logging.WARNING, "stoker"):
            assert read(loader) == before
    assert "Cache(version=" in caplog.text


def test_a_dataset_that_cannot_be_pickled_any_more_stays_as_it_was(tmp_path, caplog):
    dataset = Scaled()
    with Loader(dataset, 4, workers=1) as loader:
        expected = inline(dataset)
        dataset.handle = open(tmp_path / "file", "w")  # noqa: SIM115
        with dataset.handle, caplog.at_level(logging.WARNING, "stoker"):
            assert read(loader) == expected
            assert read(loader) == expected
    assert [record.message for record in caplog.records if "Scaled.handle" in record.message]


def test_a_factory_is_not_looked_at():
    class Refuses(Scaled):
        def __reduce_ex__(self, protocol):
            raise AssertionError("this was looked at")

    with Loader(Refuses, 4, workers=1) as loader:
        assert read(loader) == read(loader) == inline(Scaled())


def test_a_look_that_takes_long_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr("stoker.workers.snapshot._SLOW_S", 0.0)
    with Loader(Scaled(), 4, workers=1) as loader, caplog.at_level(logging.WARNING, "stoker"):
        for _ in range(3):
            read(loader)
    assert len([record for record in caplog.records if "functools.partial" in record.message]) == 1


def test_chunks_are_read_with_what_decode_holds_now(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    state = {"add": 0}

    def collate(samples):
        return [int(sample) + state["add"] for sample in samples]

    with Loader(Chunks(str(tmp_path / "*.txt")), 2, workers=1, collate=collate) as loader:
        assert list(loader) == [[0, 1], [2, 3]]
        state["add"] = 10
        assert list(loader) == [[10, 11], [12, 13]]


def test_the_work_of_a_stream_is_as_it_was_when_the_first_result_was_asked_for():
    state = {"add": 1}

    def work(item):
        return item + state["add"]

    results = stream(work, range(3), workers=1)
    state["add"] = 10
    with results:
        assert [int(result) for result in results] == [10, 11, 12]
