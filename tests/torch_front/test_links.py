"""Datasets that wait for what the training does with earlier batches: none waits for a later one."""

from __future__ import annotations

import functools
import multiprocessing
import socket
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

COUNT = 60  # batches: enough for bundles to grow
AHEAD = 3  # of the consumer

links = pytest.importorskip("stoker.torch.links")
GATE = multiprocessing.Lock()


class Fed(data.IterableDataset):
    """What the training process puts into a queue."""

    def __init__(self, queue):
        self.queue = queue

    def __iter__(self):
        return iter(self.queue.get, None)


class Following(data.Dataset):
    """Numbers, none of which is there before the consumer has come near."""

    def __init__(self, step):
        self.step = step

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        while self.step.value + AHEAD < index:
            time.sleep(0.0002)
        return index


def test_what_is_done_with_a_batch_may_be_what_the_next_one_is_made_of(loader_class):
    queue = multiprocessing.Queue()
    for number in range(AHEAD):
        queue.put(number)
    found = []
    for batch in loader_class(Fed(queue), num_workers=1):
        found.append(batch.item())
        queue.put(found[-1] + AHEAD if found[-1] + AHEAD < COUNT else None)
    assert found == list(range(COUNT))
    queue.close()
    queue.join_thread()


def test_a_sample_may_wait_until_the_consumer_has_come_near(loader_class):
    step = multiprocessing.Value("i", 0)
    for batch in loader_class(Following(step), num_workers=1):
        step.value = batch.item() + 1
    assert step.value == COUNT


class Near(data.Dataset):
    """The same with a tensor in shared memory, in which the consumer notes where it is."""

    def __init__(self, step):
        self.step = step

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        while self.step.item() + AHEAD < index:
            time.sleep(0.0002)
        return index


def test_a_sample_may_wait_for_a_number_in_a_shared_tensor(loader_class):
    step = torch.zeros(1, dtype=torch.long).share_memory_()
    for batch in loader_class(Near(step), num_workers=1):
        step[0] = batch.item() + 1
    assert step.item() == COUNT


class Asking(data.Dataset):
    """Asks a server, which is the consumer's, for each sample."""

    def __init__(self, connection):
        self.connection = connection

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return int.from_bytes(self.connection.recv(2), "big")


def test_a_sample_may_wait_for_what_comes_by_a_socket(loader_class):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for number in range(AHEAD):
            ours.send(number.to_bytes(2, "big"))
        found = []
        for batch in loader_class(Asking(theirs), num_workers=1):
            found.append(batch.item())
            ours.send((found[-1] + AHEAD).to_bytes(2, "big"))
    assert found == list(range(COUNT))


class OfEpochs:
    """Has the number of the epoch in shared memory, as datasets of Hugging Face do."""

    def __init__(self):
        self._epoch = torch.tensor(0).share_memory_()


class WithGlobal:
    def __getitem__(self, index):
        with GATE:
            return index


def closure(value):
    return lambda: value


@pytest.mark.parametrize(
    ("make", "is_linked"),
    [
        (lambda: Following(multiprocessing.Value("i")), True),
        (lambda: [{"deep": (Following(multiprocessing.RawValue("i")),)}], True),
        (lambda: functools.partial(print, multiprocessing.Event()), True),
        (lambda: closure(multiprocessing.Lock()), True),
        (lambda: Fed(multiprocessing.SimpleQueue()).__iter__, True),
        (lambda: multiprocessing.Pipe(), True),
        (WithGlobal, True),
        (lambda: Near(torch.zeros(3).share_memory_()), True),
        (lambda: Near(torch.zeros(3)), False),
        (lambda: data.TensorDataset(torch.zeros(2000).share_memory_()), False),
        (OfEpochs, False),
        (lambda: Following(None), False),
        (lambda: data.TensorDataset(torch.arange(3)), False),
        (lambda: list(range(100_000)), False),
        (lambda: data.default_collate, False),
    ],
)
def test_links_are_found(make, is_linked):
    assert links.has_links(make()) == is_linked


def test_an_object_that_has_itself_is_looked_at_once():
    ring = Following(None)
    ring.step = ring
    assert not links.has_links(ring)
