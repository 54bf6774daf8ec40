"""Ctrl-C, and exceptions of the user's own signal handlers, at any moment: nothing hangs, is lost, or comes twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import stoker
from stoker import Chunks, Loader, Processes, Threads
from tests.lifecycle.storms import Interrupted, Storm

WORKERS = [Threads(2), Processes(2), Processes(2, start="fork")]
COUNT = 60

pytestmark = pytest.mark.timeout(120)


class Slow:
    """Sample i is i, after some milliseconds; each time it is made, a byte is added to a file."""

    def __init__(self, log: str = "", seconds: float = 0.002) -> None:
        self.log, self.seconds = log, seconds

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        if self.log:
            fd = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(fd, b".")
            os.close(fd)
        time.sleep(self.seconds)
        return index

    def work(self, item: int) -> np.ndarray:
        return np.array([self[item]])


def moved(batch: np.ndarray) -> np.ndarray:
    return batch.copy()


def slowly(path: str) -> Iterator[np.ndarray]:
    time.sleep(0.005)
    yield from np.load(path)


def made(log: str) -> int:
    return os.path.getsize(log)


@pytest.mark.parametrize("options", [{}, {"to": moved}, {"to_device": moved}], ids=["plain", "to", "to_device"])
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_a_loader_in_a_storm_gives_the_same_epochs(workers, options):
    with Storm().every(0.003) as storm, Loader(Slow(), 2, workers=workers, **options) as loader:
        got = [storm.all_of(iter(loader), np.ndarray.tolist) for _ in range(2)]
    assert got == [[[k, k + 1] for k in range(0, COUNT, 2)]] * 2
    assert storm.count > 10


@pytest.mark.parametrize("options", [{}, {"to": moved}, {"to_device": moved}], ids=["plain", "to", "to_device"])
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_a_stream_in_a_storm_gives_the_same_results(workers, options):
    with (
        Storm().every(0.003) as storm,
        stoker.stream(Slow().work, iter(range(COUNT)), workers=workers, **options) as results,
    ):
        assert storm.all_of(results, np.ndarray.tolist) == [[k] for k in range(COUNT)]
    assert storm.count > 10


@pytest.mark.parametrize(
    "options", [{"to": moved}, {"to_device": moved}, {"shuffle": True}], ids=["to", "to_device", "shuffle"]
)
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_chunk_files_in_a_storm_give_the_same_epochs(workers, options, tmp_path):
    """Also batches of samples that several files have left over, and files whose samples are counted first."""
    for k in range(8):
        np.save(tmp_path / f"{k}.npy", np.arange(10 * k, 10 * k + 10))
    files = Chunks(str(tmp_path), read=slowly)
    with Loader(files, 3, **options) as oracle:
        wanted = [[batch.tolist() for batch in oracle] for _ in range(2)]
    with Storm().every(0.003) as storm, Loader(files, 3, workers=workers, **options) as loader:
        got = [storm.all_of(iter(loader), np.ndarray.tolist) for _ in range(2)]
    assert got == wanted
    assert storm.count > 5


def test_a_state_that_was_saved_in_a_storm_says_what_the_consumer_has():
    def look(batch):
        return batch.tolist(), loader.state_dict()

    with Storm().every(0.003) as storm, Loader(Slow(), 5, workers=2, to_device=moved) as loader:
        got = storm.all_of(iter(loader), look)
    for nth, (batch, state) in enumerate(got):
        assert batch == list(range(5 * nth, 5 * nth + 5))
        with Loader(Slow(seconds=0), 5) as resumed:
            resumed.load_state_dict(state)
            rest = [one.tolist() for one in resumed] if nth + 1 < len(got) else []
        assert rest == [one for one, _ in got[nth + 1 :]]


@pytest.mark.parametrize("options", [{}, {"to_device": moved}], ids=["plain", "to_device"])
@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_an_exception_out_of_a_wait_throws_no_work_away(workers, options, tmp_path):
    """next() is given up several times before a result is there, and each item is worked on once all the same."""
    log = str(tmp_path / "log")
    work = Slow(log, 0.01).work
    with (
        Storm("wait").every(0.005) as storm,
        stoker.stream(work, iter(range(COUNT)), workers=workers, **options) as results,
    ):
        assert storm.all_of(results, np.ndarray.tolist) == [[k] for k in range(COUNT)]
    assert storm.count > 10
    assert made(log) == COUNT


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_an_exception_while_the_items_are_waited_for_throws_no_work_away(workers, tmp_path):
    log = str(tmp_path / "log")

    class Patient:
        """Items that come one by one, slowly."""

        def __init__(self):
            self.number = -1

        def __iter__(self):
            return self

        def __next__(self):
            time.sleep(0.01)
            self.number += 1
            if self.number == 20:
                raise StopIteration
            return self.number

    with (
        Storm("__next__").every(0.015) as storm,
        stoker.stream(Slow(log, 0.01).work, Patient(), workers=workers) as results,
    ):
        got = storm.all_of(results, np.ndarray.tolist)
    assert got == [[k] for k in range(20)]
    assert storm.count  # a busy machine lets few of them fall into the items
    assert made(log) == 20


def test_an_exception_while_the_length_is_waited_for_throws_no_work_away(tmp_path):
    log = str(tmp_path / "log")

    def make():
        with open(log, "a") as file:
            file.write(".")
        time.sleep(0.3)
        return Slow(seconds=0)

    with Storm("wait").every(0.02) as storm, Loader(make, 2, workers=1) as loader:
        length = None
        while length is None:
            try:
                storm.is_on = True
                length = len(loader)
            except (Interrupted, KeyboardInterrupt):
                storm.is_on = False
        storm.is_on = False
        assert length == COUNT // 2
        assert storm.count > 5
        assert made(log) == 1


def test_a_generator_that_was_interrupted_is_not_taken_for_the_end_of_the_items():
    def items():
        yield 0
        signal.raise_signal(signal.SIGINT)
        yield 1

    with stoker.stream(Slow(seconds=0).work, items(), workers=Threads(1)) as results:
        got = []
        with pytest.raises(KeyboardInterrupt):
            got.extend(result.tolist() for result in results)
        with pytest.raises(RuntimeError, match="KeyboardInterrupt has ended the generator that gives the items"):
            got.extend(result.tolist() for result in results)
    assert got == [[0]]


FRONTS = {
    "loader": lambda data, **options: Loader(data, None, workers=0, **options),
    "getitems": lambda data, **options: Loader(Together(data), 1, workers=0, **options),
    "collate": lambda data, **options: Loader(range(COUNT), 1, collate=lambda one: data[one[0]], workers=0, **options),
    "stream": lambda data, **options: stoker.stream(data.__getitem__, range(COUNT), workers=0, **options),
}


class Together:
    def __init__(self, data) -> None:
        self.data = data

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        return self.data[index]

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [self.data[index] for index in indices]


class Calling:
    """Calls a function as sample 5 is made for the first time."""

    def __init__(self, call) -> None:
        self.call, self.is_called = call, False

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        if index == 5 and not self.is_called:
            self.is_called = True
            self.call()
        return index


def taken(iterator: Iterator, error: type[BaseException]) -> tuple[list[int], int]:
    """What comes to a consumer that goes on after that error, and how often it came."""
    got, count = [], 0
    while True:
        try:
            got.extend(np.ravel(batch).tolist()[0] for batch in iterator)
            return got, count
        except error:
            count += 1


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("error", [Interrupted, SystemExit])
def test_without_workers_a_signal_is_no_error_of_the_sample(error, front, on_error):
    def handle(*_):
        raise error

    before = signal.signal(signal.SIGTERM, handle)
    try:
        with FRONTS[front](Calling(lambda: signal.raise_signal(signal.SIGTERM)), on_error=on_error) as results:
            assert taken(iter(results), error) == (list(range(COUNT)), 1)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("front", FRONTS)
def test_without_workers_an_alarm_of_the_consumer_is_no_error_of_the_sample(front, on_error):
    storm = Storm()
    storm.count = 1  # the next is not Ctrl-C
    with storm.every(60), FRONTS[front](Calling(lambda: time.sleep(10)), on_error=on_error) as results:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        storm.is_on = True
        assert taken(iter(results), Interrupted) == (list(range(COUNT)), 1)


@pytest.mark.parametrize("limit", [0, 60])
@pytest.mark.parametrize("front", FRONTS)
def test_without_workers_an_alarm_of_the_dataset_is_its_own_error(front, limit):
    """Whether the consumer has set one, too, or not."""
    storm = Storm()

    def be_slow():
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(10)

    with storm.every(limit), FRONTS[front](Calling(be_slow)) as results:
        storm.is_on, storm.count = True, 1
        assert taken(iter(results), Interrupted) == ([k for k in range(COUNT) if k != 5], 1)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_without_workers_a_signal_is_no_error_of_the_file(on_error, tmp_path):
    calls = []

    def read(path):
        if not calls:
            calls.append(path)
            signal.raise_signal(signal.SIGTERM)
        return np.load(path)

    def handle(*_):
        raise Interrupted

    np.save(tmp_path / "0.npy", np.arange(COUNT))
    before = signal.signal(signal.SIGTERM, handle)
    try:
        with Loader(Chunks(str(tmp_path / "*.npy"), read=read), 1, workers=0, on_error=on_error) as loader:
            assert taken(iter(loader), Interrupted) == (list(range(COUNT)), 1)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interrupt_in_what_to_calls_is_no_error_of_the_batch():
    """An error of ``to`` comes in place of its batch; an interrupt of the user's does not."""
    asked = []

    def to(batch):
        asked.append(batch.tolist())
        if len(asked) == 2:
            signal.raise_signal(signal.SIGALRM)
        return batch

    storm = Storm()
    with storm.every(60), Loader(Slow(seconds=0), 20, workers=2, to=to) as loader:
        assert [batch[0] for batch in storm.all_of(iter(loader), np.ndarray.tolist)] == [0, 20, 40]
    assert [batch[0] for batch in asked] == [0, 20, 20, 40]


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_closing_in_a_storm_leaves_nothing(workers):
    """That is checked after every test; here it begins with the start of the workers, too."""
    with Storm().every(0.002) as storm:
        for _ in range(5):
            loader = Loader(Slow(), 2, workers=workers, to_device=moved)
            try:
                storm.is_on = True
                next(iter(loader))
                loader.close()
            except (Interrupted, KeyboardInterrupt):
                pass
            finally:
                storm.is_on = False
            loader.close()
            del loader


class Gated:
    """Says that it works, and waits until somebody opens the other end of a pipe."""

    def __init__(self, folder) -> None:
        self.begun, self.gate = str(folder / "begun"), str(folder / "gate")
        os.mkfifo(self.begun)
        os.mkfifo(self.gate)

    def __call__(self, item: int) -> np.ndarray:
        os.close(os.open(self.begun, os.O_WRONLY))
        os.close(os.open(self.gate, os.O_RDONLY))
        return np.array([item])


@pytest.mark.parametrize("options", [{}, {"to_device": moved}], ids=["plain", "to_device"])
@pytest.mark.parametrize("workers", WORKERS[:2], ids=repr)
def test_a_signal_that_does_not_end_the_wait_is_heard_all_the_same(workers, options, tmp_path):
    """As one that comes a moment before. Another thread gets it here; the handler runs in the main thread."""
    gated = Gated(tmp_path)

    def press_ctrl_c():
        os.close(os.open(gated.begun, os.O_RDONLY))
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    ctrl_c = threading.Thread(target=press_ctrl_c)
    ctrl_c.start()
    with stoker.stream(gated, [5], workers=workers, **options) as results:
        with pytest.raises(KeyboardInterrupt):
            next(results)
        os.close(os.open(gated.gate, os.O_WRONLY))
        assert next(results) == [5]
    ctrl_c.join()
