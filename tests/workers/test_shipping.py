"""What goes along to a worker: what is shared memory stays shared, and what cannot travel is named."""

from __future__ import annotations

import multiprocessing
import sqlite3

import pytest

from stoker import Loader, Processes, ShippingError
from tests.workers.changing import Counting, Scaled, read

# What is shared memory


@pytest.mark.parametrize("start", ["nursery", "spawn"])
def test_a_value_of_multiprocessing_stays_shared(start):
    value = multiprocessing.get_context("spawn").Value("q", 0)
    with Loader(Counting(value), 2, workers=Processes(2, start=start)) as loader:
        read(loader)
        assert value.value >= 4


def test_a_value_of_the_fork_context_stays_shared_in_forks():
    value = multiprocessing.get_context("fork").Value("q", 0)
    with Loader(Counting(value), 2, workers=Processes(2, start="fork")) as loader:
        read(loader)
        assert value.value >= 4


def test_a_value_of_the_fork_context_elsewhere_is_an_error_with_a_remedy():
    value = multiprocessing.get_context("fork").Value("q", 0)
    with pytest.raises(ShippingError, match=r"Counting\.value.*get_context\('spawn'\)"):
        Loader(Counting(value), 2, workers=2)


class Shared:
    """Reads what another process writes."""

    def __init__(self, cells, lock=None, event=None):
        self.cells, self.lock, self.event = cells, lock, event

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if self.lock is not None:
            with self.lock:
                return self.cells[index]
        return self.cells[index]


@pytest.mark.parametrize("with_lock", [False, True])
def test_an_array_of_multiprocessing_stays_shared(with_lock):
    spawn = multiprocessing.get_context("spawn")
    cells = spawn.Array("d", [1.0, 2.0], lock=with_lock)
    with Loader(Shared(cells, spawn.Lock(), spawn.Event()), 2, workers=1) as loader:
        assert read(loader) == [[1.0, 2.0]]
        pids = loader.worker_pids
        cells[0] = 7.0
        loader.set_epoch(5)
        assert read(loader) == [[7.0, 2.0]]
        assert loader.worker_pids == pids


class Asking:
    def __init__(self, queue):
        self.queue = queue

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.queue.get()


def test_a_queue_of_multiprocessing_stays_shared():
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    with Loader(Asking(queue), None, workers=1) as loader:
        for number in (5, 6, 7):
            queue.put(number)
        assert [int(number) for number in loader] == [5, 6, 7]
    queue.close()


def test_a_shared_tensor_stays_shared():
    torch = pytest.importorskip("torch")
    cells = torch.zeros(4).share_memory_()
    part = cells[1:3]
    with Loader(Shared(part), 2, workers=1) as loader:
        assert read(loader) == [[0.0, 0.0]]
        pids = loader.worker_pids
        cells[1] = 5.0
        loader.set_epoch(7)
        assert read(loader) == [[5.0, 0.0]]
        assert loader.worker_pids == pids


def test_a_tensor_that_is_not_shared_arrives_with_the_next_epoch():
    torch = pytest.importorskip("torch")
    cells = torch.zeros(2)
    with Loader(Shared(cells), 2, workers=1) as loader:
        assert read(loader) == [[0.0, 0.0]]
        cells[0] = 5.0
        assert read(loader) == [[5.0, 0.0]]


# What cannot travel is named

connection = sqlite3.connect(":memory:", check_same_thread=False)


def test_a_global_that_cannot_travel_is_named():
    namespace = {"connection": connection, "__name__": "made_by_hand"}
    exec("class Rows:\n def __len__(self): return 2\n def __getitem__(self, i): return connection, i\n", namespace)
    with pytest.raises(ShippingError, match=r"the global connection, which Rows\.__getitem__ uses, a Connection"):
        Loader(namespace["Rows"](), workers=1)


def test_an_attribute_deep_within_is_named():
    dataset = Scaled()
    dataset.parts = {"left": [1, Counting(connection)]}
    with pytest.raises(ShippingError, match=r"Scaled\.parts\['left'\]\[1\]\.value, a Connection"):
        Loader(dataset, workers=1)


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_an_open_file_is_not_read_and_sent_but_refused(tmp_path, mode):
    path = tmp_path / "lines.txt"
    path.write_text("first\nsecond\n")
    dataset = Scaled()
    with open(path, mode) as dataset.handle, pytest.raises(ShippingError, match=r"Scaled\.handle"):
        Loader(dataset, workers=1)
