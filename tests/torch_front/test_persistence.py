"""Workers that live over epochs, and workers that do not."""

from __future__ import annotations

import gc

import psutil
import pytest

from tests.torch_front.datasets import Numbers, Process, Recorded, Scaled, identity, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


def pids(loader):
    return [pid for pid, _ in loader]


def gone(pids):
    """Whether all of the processes end."""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return not psutil.wait_procs(processes, timeout=20)[1]


def make(kind, count=4, **arguments):
    return kind(Process(count), batch_size=None, collate_fn=identity, num_workers=2, **arguments)


def test_persistent_workers_are_the_same_processes(loader_class):
    loader = make(loader_class, persistent_workers=True)
    first, second = pids(loader), pids(loader)
    assert first == second
    assert len(dict.fromkeys(first)) == 2


def test_persistent_workers_keep_the_state_of_the_dataset(loader_class):
    loader = make(loader_class, persistent_workers=True)
    assert [[made for _, made in loader] for _ in range(2)] == [[1, 1, 2, 2], [3, 3, 4, 4]]


def test_fresh_workers_have_fresh_copies_of_the_dataset(loader_class):
    loader = make(loader_class)
    assert [[made for _, made in loader] for _ in range(2)] == [[1, 1, 2, 2]] * 2


def test_inline_the_dataset_itself_is_used(loader_class):
    dataset = Process(2)
    loader = loader_class(dataset, batch_size=None, collate_fn=identity)
    assert [[made for _, made in loader] for _ in range(2)] == [[1, 2], [3, 4]]
    assert dataset.made == 4


def test_a_changed_attribute_arrives_with_the_next_epoch(loader_class, num_workers):
    dataset = Scaled(3)
    loader = loader_class(dataset, batch_size=3, num_workers=num_workers)
    epochs = []
    for factor in [1, 10, 100]:
        dataset.factor = factor
        epochs += values(loader)
    assert epochs == [[0, 1, 2], [0, 10, 20], [0, 100, 200]]


def test_a_changed_attribute_does_not_reach_persistent_workers(loader_class):
    dataset = Scaled(3)
    loader = loader_class(dataset, batch_size=3, num_workers=2, persistent_workers=True)
    assert values(loader) == [[0, 1, 2]]
    dataset.factor = 10
    assert values(loader) == [[0, 1, 2]]


def test_an_attribute_changed_before_the_first_epoch_arrives(loader_class):
    dataset = Scaled(3)
    loader = loader_class(dataset, batch_size=3, num_workers=2, persistent_workers=True)
    dataset.factor = 10
    assert values(loader) == [[0, 10, 20]]


def test_a_change_during_the_epoch_does_not_reach_the_workers(loader_class):
    dataset = Scaled(8)
    batches = []
    for batch in loader_class(dataset, batch_size=2, num_workers=2, prefetch_factor=1):
        dataset.factor = 10
        batches += batch.tolist()
    assert batches == list(range(8))


def test_a_changed_list_in_the_dataset_arrives(loader_class, num_workers):
    samples = [1, 2, 3]
    loader = loader_class(samples, batch_size=None, num_workers=num_workers)
    assert list(loader) == [1, 2, 3]
    samples[1] = 20
    samples.append(4)
    assert list(loader) == [1, 20, 3, 4]


def test_a_changed_tensor_in_the_dataset_arrives(loader_class, num_workers):
    tensor = torch.zeros(3)
    loader = loader_class(data.TensorDataset(tensor), batch_size=3, num_workers=num_workers)
    list(loader)
    tensor += 5
    assert [batch.tolist() for (batch,) in loader] == [[5, 5, 5]]


def test_a_transform_set_between_epochs_arrives(loader_class, num_workers):
    class Transformed(Numbers):
        transform = None

        def __getitem__(self, index):
            return index if self.transform is None else self.transform(index)

    dataset = Transformed(3)
    loader = loader_class(dataset, batch_size=None, num_workers=num_workers)
    assert list(loader) == [0, 1, 2]
    dataset.transform = lambda index: -index
    assert list(loader) == [0, -1, -2]


def test_workers_end_with_the_epoch(loader_class):
    loader = make(loader_class)
    assert gone(pids(loader))


@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_workers_end_when_the_iterator_is_dropped(loader_class, persistent):
    loader = make(loader_class, count=20, persistent_workers=persistent)
    iterator = iter(loader)
    seen = [next(iterator)[0] for _ in range(2)]
    del iterator, loader
    gc.collect()
    assert gone(seen)


def test_a_broken_off_loop_ends_its_workers(loader_class):
    loader = make(loader_class, count=20)
    seen = []
    for pid, _ in loader:
        seen.append(pid)
        if len(seen) == 2:
            break
    gc.collect()
    assert gone(seen)


def test_persistent_workers_outlive_a_broken_off_loop(loader_class):
    loader = make(loader_class, count=20, persistent_workers=True)
    seen = []
    for pid, _ in loader:
        seen.append(pid)
        if len(seen) == 2:
            break
    assert pids(loader)[:2] == seen


def test_an_epoch_after_a_broken_off_one_is_whole(loader_class):
    loader = loader_class(Numbers(12), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(3):
        next(iter(loader))
    assert numbers(loader) == list(range(12))


def test_persistent_workers_end_when_the_iterator_is_set_to_none(loader_class):
    """As Lightning does when it tears down."""
    loader = make(loader_class, persistent_workers=True)
    seen = pids(loader)
    assert loader._iterator is not None
    loader._iterator = None
    gc.collect()
    assert gone(seen)
    again = pids(loader)
    assert not set(again) & set(seen)
    assert len(again) == 4


def test_persistent_workers_end_with_the_loader(loader_class):
    loader = make(loader_class, persistent_workers=True)
    seen = pids(loader)
    del loader
    gc.collect()
    assert gone(seen)


def test_persistent_workers_have_one_iterator(loader_class):
    loader = loader_class(Numbers(4), num_workers=1, persistent_workers=True)
    first = iter(loader)
    assert loader._iterator is first
    list(first)
    assert iter(loader) is first


def test_fresh_workers_have_an_iterator_for_each_epoch(loader_class):
    loader = loader_class(Numbers(4), num_workers=1)
    first, second = iter(loader), iter(loader)
    assert first is not second


def test_persistent_workers_ask_the_sampler_in_each_epoch(loader_class):
    sampler = Recorded([3, 1])
    loader = loader_class(Numbers(), sampler=sampler, num_workers=1, persistent_workers=True)
    assert values(loader) == [[3], [1]]
    sampler.indices = [2]
    assert values(loader) == [[2]]


def test_a_worker_init_fn_set_later_does_not_reach_persistent_workers(loader_class):
    def scale(worker):
        data.get_worker_info().dataset.factor = 10

    loader = loader_class(Scaled(3), batch_size=3, num_workers=1, persistent_workers=True)
    assert values(loader) == [[0, 1, 2]]
    loader.worker_init_fn = scale
    assert values(loader) == [[0, 1, 2]]
