"""PyLoader's workers: what they hold in memory, what becomes of their errors and deaths, and what is left of them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import psutil
import pytest

from stoker import ClosedError, ShippingError, WorkerDied
from tests.children import children
from tests.compat.chunked import Doubled, Failing, Logging, Numbers, make, note, read, write_chunks


@pytest.fixture
def folder(tmp_path):
    return write_chunks(tmp_path / "data", [4] * 20)


def logged(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# Memory


@pytest.mark.parametrize("queue", [1, 2, 3, 5, 10])
def test_no_more_chunks_are_in_memory_than_the_queue_holds(folder, tmp_path, queue):
    log = tmp_path / "log"
    with make(folder, Logging(log, batch_size=2), num_epoch=2, max_queue_size=queue) as loader:
        for number, _ in enumerate(loader):
            if number % 2:  # two batches a chunk: after the second, it is used up
                note(log, "used up")
    events = logged(log)
    assert len(events) == 80
    in_memory = list(accumulate(-1 if event == "used up" else 1 for event in events))
    assert 1 <= max(in_memory) <= queue
    assert in_memory[-1] == 0


def test_with_a_queue_of_one_the_consumer_reads(folder, tmp_path):
    with make(folder, Logging(tmp_path / "log"), max_queue_size=1) as loader:
        read(loader)
    assert {line.split()[0] for line in logged(tmp_path / "log")} == {str(os.getpid())}


def test_else_workers_do(folder, tmp_path):
    with make(folder, Logging(tmp_path / "log"), max_queue_size=2) as loader:
        read(loader)
    assert str(os.getpid()) not in {line.split()[0] for line in logged(tmp_path / "log")}


def test_nothing_is_read_before_a_batch_is_asked_for(folder, tmp_path):
    with make(folder, Logging(tmp_path / "log")) as loader:
        assert logged(tmp_path / "log") == []
        assert loader.get_batch() is not None


# Deaths


@pytest.mark.parametrize("queue", [2, 5])
def test_a_killed_worker_loses_nothing(folder, tmp_path, queue):
    log = tmp_path / "log"
    options = {"num_epoch": 2, "max_queue_size": queue, "shuffle": True}
    with make(folder, Numbers(3, shuffle=True), **options | {"max_queue_size": 1}) as loader:
        whole = read(loader)
    seen, killed = [], set()
    with make(folder, Logging(log, 3, shuffle=True), **options) as loader:
        for number, batch in enumerate(loader):
            seen.append(batch["x"].tolist())
            pid = int(logged(log)[-1].split()[0])
            if number % 10 == 3 and pid not in killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
    assert len(killed) > 2
    assert seen == whole


class Deadly(Numbers):
    def read_file(self, path):
        if path.endswith("chunk003"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read_file(path)


def test_a_file_that_kills_each_worker_is_an_error_in_its_place(folder):
    with make(folder, Deadly(), max_queue_size=2) as loader:
        assert [loader.get_batch()["x"][0] for _ in range(3)] == [0, 4, 8]
        with pytest.raises(WorkerDied, match="SIGKILL") as caught:
            loader.get_batch()
        assert f"{folder / 'chunk003'} (file 3 of epoch 0)" in "\n".join(caught.value.__notes__)
        assert loader.get_batch()["x"][0] == 16


# Errors


@pytest.mark.parametrize("queue", [1, 2, 5])
@pytest.mark.parametrize("method", ["read_file", "batch_encode", "collate_batch"])
def test_an_error_keeps_its_type_and_says_where_it_was(folder, method, queue):
    part = Failing(method)
    with make(folder, part, part, part, num_epoch=2, max_queue_size=queue) as loader:
        with pytest.raises(LookupError, match="five") as caught:
            list(loader)
        notes = "\n".join(caught.value.__notes__)
        place = "over " if method == "read_file" else "over batch 0 of "
        assert f"{method} raised it, {place}{folder / 'chunk001'} (file 1 of epoch 0)" in notes
        assert loader.get_epoch() == 0
        assert loader.get_batch()["x"].tolist() == [8, 9]  # whoever goes on gets the next chunk


class Unshippable(Doubled):
    def __init__(self):
        self.file = sys.stdout.buffer

    def batch_encode(self, batch_data):
        return batch_data


def test_parts_that_cannot_travel_are_said_before_anything_starts(folder):
    with make(folder, dataset=Unshippable()) as loader:
        with pytest.raises(ShippingError):
            iter(loader)
        assert children() == []


# The end


@pytest.mark.parametrize("queue", [1, 2, 5])
class TestEnds:
    def test_a_loop_that_is_broken_off_leaves_nothing(self, folder, queue):
        with make(folder, max_queue_size=queue) as loader:
            for batch in loader:
                assert batch["x"].tolist() == [0, 1, 2, 3]
                break  # that nothing is left is checked after every test

    def test_a_forgotten_one_leaves_nothing(self, folder, queue):
        loader = make(folder, max_queue_size=queue)
        next(iter(loader))
        del loader
        gc.collect()

    def test_at_the_end_the_workers_go_by_themselves(self, folder, queue):
        loader = make(folder, max_queue_size=queue)
        read(loader)
        assert children() == []
        loader.close()

    def test_it_may_be_closed_twice_and_then_says_so(self, folder, queue):
        loader = make(folder, max_queue_size=queue, num_epoch=2)
        iterator = iter(loader)
        next(iterator)
        loader.close()
        loader.close()
        for use in (lambda: next(iterator), lambda: list(loader), loader.get_batch):
            with pytest.raises(ClosedError, match="closed"):
                use()
        assert loader.get_epoch() == 0

    def test_one_that_was_never_used_is_closed(self, folder, queue):
        loader = make(folder, max_queue_size=queue)
        loader.close()
        with pytest.raises(ClosedError, match="make a new one"):
            loader.get_batch()

    def test_a_new_loop_ends_the_one_before(self, folder, queue):
        with make(folder, max_queue_size=queue) as loader:
            first, second = iter(loader), iter(loader)
            assert next(second)["x"].tolist() == [0, 1, 2, 3]
            with pytest.raises(ClosedError, match="another loop"):
                next(first)

    def test_an_exception_in_the_loop_leaves_it_usable(self, folder, queue):
        with make(folder, max_queue_size=queue) as loader:
            with pytest.raises(ZeroDivisionError):
                [len(batch) // 0 for batch in loader]
            assert len(read(loader)) == 20


def test_the_interpreter_ends_with_an_open_one(folder):
    script = (
        "import psutil, sys\n"
        "from stoker.compat.pyloader import *\n"
        "class Reader(DataReader):\n"
        "    def read_file(self, path):\n"
        "        return {'x': list(open(path))}, 4\n"
        "class Lengths(Dataset):\n"
        "    def batch_encode(self, batch_data):\n"
        "        return {'x': [len(x) for x in batch_data['x']]}\n"
        "loader = DataLoader(Reader(), Lengths(), NumpyDataCollator(), sys.argv[1])\n"
        "assert loader.get_batch()['x'].tolist() == [2, 2, 2, 2]\n"
        "print(*[child.pid for child in psutil.Process().children(recursive=True)])\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split()
    assert not any(psutil.pid_exists(int(pid)) for pid in ran.stdout.split())
