"""What is shared between processes stays so in a dataset."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from tests.torch_front.datasets import Numbers, numbers

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


class Counted(Numbers):
    """Counts in a Value how many samples all workers have made."""

    def __init__(self, count, value):
        super().__init__(count)
        self.value = value

    def __getitem__(self, index):
        with self.value.get_lock():
            self.value.value += 1
        return index


@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_a_value_is_shared(loader_class, persistent):
    value = multiprocessing.Value("i", 0)
    loader = loader_class(Counted(10, value), num_workers=2, persistent_workers=persistent)
    assert numbers(loader) == list(range(10))
    assert value.value == 10
    assert numbers(loader) == list(range(10))
    assert value.value == 20


class Offset(Numbers):
    """Adds what stands in a Value, an Array or a tensor."""

    def __init__(self, count, offset):
        super().__init__(count)
        self.offset = offset

    def __getitem__(self, index):
        if isinstance(self.offset, torch.Tensor):
            return index + int(self.offset[0])
        return index + (self.offset.value if hasattr(self.offset, "value") else self.offset[0])


def set_value(shared):
    shared.value = 100


def set_first(shared):
    shared[0] = 100


SHARED = {
    "Value": (lambda: multiprocessing.Value("i", 0), set_value),
    "Value without lock": (lambda: multiprocessing.Value("i", 0, lock=False), set_value),
    "Array": (lambda: multiprocessing.Array("i", 3), set_first),
    "Array without lock": (lambda: multiprocessing.Array("i", 3, lock=False), set_first),
    "RawArray": (lambda: multiprocessing.RawArray("i", 3), set_first),
    "tensor": (lambda: torch.zeros(3, dtype=torch.int64).share_memory_(), set_first),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_a_change_of_what_is_shared_arrives_with_the_next_epoch(loader_class, name, persistent):
    make, change = SHARED[name]
    shared = make()
    loader = loader_class(Offset(3, shared), num_workers=2, persistent_workers=persistent)
    assert numbers(loader) == [0, 1, 2]
    change(shared)
    assert numbers(loader) == [100, 101, 102]


@pytest.mark.parametrize("name", ["Value", "tensor"])
def test_a_change_of_what_is_shared_arrives_within_the_epoch(loader_class, name):
    make, change = SHARED[name]
    shared = make()
    loader = loader_class(Offset(20, shared), num_workers=1, prefetch_factor=1, batch_size=None)
    iterator = iter(loader)
    assert next(iterator) == 0
    change(shared)
    found = list(iterator)
    assert found[-1] == 119
    assert found[2:] == list(range(103, 120))


def test_workers_write_into_a_shared_tensor(loader_class):
    class Writing(Numbers):
        def __init__(self, tensor):
            super().__init__(len(tensor))
            self.tensor = tensor

        def __getitem__(self, index):
            self.tensor[index] = index + 1
            return index

    tensor = torch.zeros(4, dtype=torch.int64).share_memory_()
    list(loader_class(Writing(tensor), num_workers=2))
    assert tensor.tolist() == [1, 2, 3, 4]


def test_workers_write_into_a_shared_array(loader_class):
    class Writing(Numbers):
        def __init__(self, array):
            super().__init__(len(array))
            self.array = array

        def __getitem__(self, index):
            self.array[index] = index + 1
            return index

    array = multiprocessing.Array("d", 4)
    list(loader_class(Writing(array), num_workers=2))
    assert list(array) == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Semaphore"])
def test_a_lock_keeps_workers_apart(loader_class, kind):
    class Locked(Numbers):
        def __init__(self, count, lock, value):
            super().__init__(count)
            self.lock, self.value = lock, value

        def __getitem__(self, index):
            with self.lock:
                before = self.value.value
                for _ in range(200):
                    pass
                self.value.value = before + 1
            return index

    value = multiprocessing.Value("i", 0, lock=False)
    list(loader_class(Locked(40, getattr(multiprocessing, kind)(), value), batch_size=4, num_workers=2))
    assert value.value == 40


def test_a_lock_held_here_stops_the_workers(loader_class):
    class Locked(Numbers):
        def __init__(self, lock):
            super().__init__(2)
            self.lock = lock

        def __getitem__(self, index):
            with self.lock:
                return index

    lock = multiprocessing.Lock()
    loader = loader_class(Locked(lock), batch_size=None, num_workers=1, timeout=0.3)
    with lock:
        iterator = iter(loader)
        with pytest.raises(RuntimeError, match="timed out"):
            next(iterator)


def test_a_queue_brings_messages_from_the_workers(loader_class):
    class Telling(Numbers):
        def __init__(self, queue):
            super().__init__(3)
            self.queue = queue

        def __getitem__(self, index):
            self.queue.put(index * 10)
            return index

    queue = multiprocessing.SimpleQueue()
    list(loader_class(Telling(queue), num_workers=1))
    assert [queue.get() for _ in range(3)] == [0, 10, 20]
    queue.close()


def test_an_event_set_here_lets_workers_go_on(loader_class):
    class Waiting(Numbers):
        def __init__(self, event):
            super().__init__(3)
            self.event = event

        def __getitem__(self, index):
            assert self.event.wait(60)
            return index

    event = multiprocessing.Event()
    iterator = iter(loader_class(Waiting(event), num_workers=2))
    timer = threading.Timer(0.05, event.set)
    timer.start()
    assert numbers(iterator) == [0, 1, 2]
    timer.join()


def test_a_value_steers_a_stream_with_set_epoch(loader_class):
    """As the streaming datasets of Hugging Face do."""

    class Epochs(data.IterableDataset):
        def __init__(self):
            self.epoch = torch.zeros(1, dtype=torch.int64).share_memory_()

        def set_epoch(self, epoch):
            self.epoch.fill_(epoch)

        def __iter__(self):
            yield int(self.epoch[0])

    dataset = Epochs()
    loader = loader_class(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    epochs = []
    for epoch in range(3):
        dataset.set_epoch(epoch)
        epochs.append(list(loader))
    assert epochs == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=pytest.mark.exhaustive)])
def test_a_value_is_shared_with_workers_started_otherwise(loader_class, method):
    value = multiprocessing.get_context(method).Value("i", 0)
    loader = loader_class(Counted(4, value), num_workers=1, multiprocessing_context=method)
    assert numbers(loader) == [0, 1, 2, 3]
    assert value.value == 4


def test_inline_nothing_is_copied(loader_class):
    value = multiprocessing.Value("i", 0)
    list(loader_class(Counted(3, value)))
    assert value.value == 3
