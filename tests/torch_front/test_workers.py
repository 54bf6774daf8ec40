"""What a worker knows about itself, and what a worker_init_fn may do."""

from __future__ import annotations

import multiprocessing
import os
import random
from functools import partial

import numpy as np
import pytest

from tests.torch_front.datasets import (
    Drawing,
    Informed,
    InformedStream,
    Numbers,
    Scaled,
    Split,
    Stream,
    identity,
    values,
)

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


def test_in_the_training_process_there_is_no_worker_info(loader_class):
    assert list(loader_class(Informed(2), batch_size=None)) == [None, None]
    list(loader_class(Informed(2), batch_size=None, num_workers=1))
    assert data.get_worker_info() is None


def test_map_style_workers_know_their_number(loader_class):
    infos = list(loader_class(Informed(4), batch_size=None, collate_fn=identity, num_workers=2))
    assert [(info[0], info[1], info[3]) for info in infos] == [(0, 2, True), (1, 2, True)] * 2


def test_workers_of_streams_know_their_number(loader_class):
    infos = list(loader_class(InformedStream(2), batch_size=None, collate_fn=identity, num_workers=2))
    assert infos == [(0, 2, True, True), (1, 2, True, True)] * 2


def test_worker_info_is_of_torchs_class_and_cannot_be_changed(loader_class):
    class Class(Numbers):
        def __getitem__(self, index):
            info = data.get_worker_info()
            try:
                info.id = 5
            except AttributeError:
                return type(info).__module__, type(info).__qualname__, info.id
            return None

    expected = (data._utils.worker.WorkerInfo.__module__, "WorkerInfo", 0)
    assert list(loader_class(Class(1), batch_size=None, collate_fn=identity, num_workers=1)) == [expected]


class OfProcess(Numbers):
    def __getitem__(self, index):
        return data.get_worker_info().id, os.getpid()


@pytest.mark.parametrize("end", ["the last batch", "by hand"])
def test_which_processes_the_workers_were_is_known_after_the_end(loader_class, end):
    iterator = iter(loader_class(OfProcess(6), batch_size=None, num_workers=2))
    seen = dict(next(iterator) for _ in range(2))
    if end == "the last batch":
        list(iterator)
    else:
        iterator._shutdown_workers()
    workers = iterator._workers
    assert [worker.ident for worker in workers] == [worker.pid for worker in workers]
    assert len({worker.name for worker in workers}) == len(workers)
    assert {number: worker.pid for number, worker in enumerate(workers)} == seen
    for worker in workers:
        worker.join(20)
        assert not worker.is_alive()


def test_collate_fn_knows_the_worker(loader_class):
    loader = loader_class(Numbers(4), collate_fn=lambda batch: data.get_worker_info().id, num_workers=2)
    assert list(loader) == [0, 1, 0, 1]


def test_map_style_batches_go_to_the_workers_in_turn(loader_class):
    class Who(Numbers):
        def __getitem__(self, index):
            return data.get_worker_info().id

    assert values(loader_class(Who(10), batch_size=2, num_workers=3)) == [[0, 0], [1, 1], [2, 2], [0, 0], [1, 1]]


class Doubling:
    """A worker_init_fn that changes the worker's copy of the dataset."""

    def __call__(self, worker):
        data.get_worker_info().dataset.factor = 10 ** (worker + 1)


def test_worker_init_fn_changes_the_workers_copy_of_the_dataset(loader_class):
    dataset = Scaled(4)
    loader = loader_class(dataset, num_workers=2, worker_init_fn=Doubling())
    assert values(loader) == [[0], [100], [20], [300]]
    assert dataset.factor == 1


def test_worker_init_fn_set_later_is_used(loader_class):
    loader = loader_class(Scaled(4), num_workers=2)
    assert values(loader) == [[0], [1], [2], [3]]
    loader.worker_init_fn = Doubling()
    assert values(loader) == [[0], [100], [20], [300]]
    loader.worker_init_fn = None
    assert values(loader) == [[0], [1], [2], [3]]


def test_worker_init_fn_is_not_called_without_workers(loader_class):
    calls = []
    list(loader_class(Numbers(2), worker_init_fn=calls.append))
    assert calls == []


def test_worker_init_fn_runs_after_seeding(loader_class):
    """What it draws is the beginning of the worker's streams; what it seeds holds."""

    def draw(worker):
        data.get_worker_info().dataset.first = random.random(), float(np.random.random()), float(torch.rand(()))

    class First(Numbers):
        def __getitem__(self, index):
            return self.first

    def run(kind):
        torch.manual_seed(5)
        loader = kind(First(2), batch_size=None, collate_fn=identity, num_workers=2, worker_init_fn=draw)
        return list(loader)

    assert run(loader_class) == run(data.DataLoader)


def test_a_seed_set_by_worker_init_fn_holds(loader_class):
    def seed_all(worker):
        torch.manual_seed(worker)
        random.seed(worker)
        np.random.seed(worker)

    loader = loader_class(Drawing(4), batch_size=None, collate_fn=identity, num_workers=2, worker_init_fn=seed_all)
    epochs = [list(loader), list(loader)]
    assert epochs[0] == epochs[1]
    assert [drawn[0] for drawn in epochs[0]] == [0, 1, 0, 1]
    assert [drawn[1] for drawn in epochs[0][:2]] == [random.Random(0).random(), random.Random(1).random()]


def test_worker_init_fn_runs_before_a_stream_is_iterated(loader_class):
    def shorten(worker):
        data.get_worker_info().dataset.count = worker + 1

    assert values(loader_class(Stream(9), num_workers=2, worker_init_fn=shorten)) == [[0], [0], [1]]


def test_worker_init_fn_runs_once_for_each_fresh_worker(loader_class, tmp_path):
    loader = loader_class(Numbers(4), num_workers=2, worker_init_fn=partial(note, tmp_path / "log"))
    list(loader), list(loader)
    assert sorted((tmp_path / "log").read_text().split()) == ["0", "0", "1", "1"]


def test_worker_init_fn_runs_once_for_each_persistent_worker(loader_class, tmp_path):
    loader = loader_class(
        Numbers(4), num_workers=2, worker_init_fn=partial(note, tmp_path / "log"), persistent_workers=True
    )
    list(loader), list(loader)
    assert sorted((tmp_path / "log").read_text().split()) == ["0", "1"]


def note(path, worker):
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{worker}\n".encode())
    os.close(file)


def test_worker_init_fn_may_be_a_lambda(loader_class):
    loader = loader_class(Scaled(2), num_workers=1, worker_init_fn=lambda worker: Doubling()(worker))
    assert values(loader) == [[0], [10]]


def test_a_stream_is_split_by_worker_init_fn(loader_class):
    def assign(worker):
        info = data.get_worker_info()
        info.dataset.bounds = range(worker * 3, worker * 3 + 3)

    class Part(data.IterableDataset):
        def __iter__(self):
            return iter(self.bounds)

    assert values(loader_class(Part(), batch_size=2, num_workers=2, worker_init_fn=assign)) == [
        [0, 1],
        [3, 4],
        [2],
        [5],
    ]


class Named(torch.utils.data.Dataset):
    """Says by which name log records know the process."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return multiprocessing.current_process().name


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_does_not_call_itself_the_main_process(loader_class, method):
    names = list(loader_class(Named(), batch_size=None, num_workers=2, multiprocessing_context=method))
    assert multiprocessing.current_process().name == "MainProcess"
    assert "MainProcess" not in names
    assert names[0] != names[1]


def test_workers_are_other_processes(loader_class):
    class Pid(Numbers):
        def __getitem__(self, index):
            return os.getpid()

    pids = list(loader_class(Pid(4), batch_size=None, num_workers=2))
    assert pids[0] == pids[2] != pids[1] == pids[3]
    assert os.getpid() not in pids


def test_a_worker_sees_the_environment_and_the_folder_of_the_loop(loader_class, monkeypatch, tmp_path):
    class Surroundings(Numbers):
        def __getitem__(self, index):
            return os.environ.get("STOKER_TEST_WORD"), os.getcwd()

    monkeypatch.setenv("STOKER_TEST_WORD", "ash")
    monkeypatch.chdir(tmp_path)
    loader = loader_class(Surroundings(1), batch_size=None, collate_fn=identity, num_workers=1)
    assert list(loader) == [("ash", str(tmp_path))]


def test_a_split_stream_gives_each_sample_once(loader_class):
    assert values(loader_class(Split(7), batch_size=2, num_workers=2)) == [[0, 2], [1, 3], [4, 6], [5]]
