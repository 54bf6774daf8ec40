"""What rotation takes: room for the samples that rotate and for those under way, however long it goes on."""

from __future__ import annotations

import contextlib
import itertools
import os
import random

import numpy as np
import psutil
import pytest

from stoker import Inline, Loader, Processes, Rotation, Threads
from stoker.testing import chaos
from tests.rotation.datasets import as_list

pytestmark = pytest.mark.timeout(120)

KIB = 1024
SAMPLE = 60 * KIB  # with its form it takes a cell of 64 KiB
CELL = 64 * KIB
TABLES = 64 * KIB  # at most, for so few places
WORKERS = [Inline(), Threads(3), Processes(2), Processes(3, start="fork")]
SIZE, BATCH, PREFETCH = 10, 2, 2


class Big:
    """Sample i has ``sizes[i]`` bytes, all of them i."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full(self.sizes[index], index % 251, np.uint8)


class Files:
    """The files that rotations have made, by their blocks."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def kib(self) -> int:
        """Of the newest."""
        return os.fstat(self.descriptors[-1]).st_blocks // 2

    def close(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.pop())


@pytest.fixture
def files(monkeypatch):
    made, new_file = Files(), Rotation.new_file

    def noted(self: Rotation) -> int:
        fd = new_file(self)
        made.descriptors.append(os.dup(fd))
        return fd

    monkeypatch.setattr(Rotation, "new_file", noted)
    yield made
    made.close()


@pytest.fixture(params=["memory", "disk"])
def kept(request, tmp_path):
    return Rotation(3, request.param, SIZE, tmp_path if request.param == "disk" else None)


def under_way(workers) -> int:
    """Samples that may be under way: the documents' formula."""
    return workers.n * (PREFETCH + 2) * BATCH


def make(dataset, workers, rotation, **options) -> Loader:
    return Loader(dataset, BATCH, shuffle=True, workers=workers, prefetch=PREFETCH, rotation=rotation, **options)


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_in_the_steady_state_there_is_room_for_those_that_rotate_and_those_under_way(workers, kept, files):
    """And it is reached early: an epoch later not a page more has been taken."""
    most = []
    with make(Big([SAMPLE] * 90), workers, kept) as loader:
        for _ in range(3):
            taken = []
            for batch in loader:
                assert (batch == batch[:, :1]).all()
                taken.append(files.kib())
            most.append(max(taken))
    assert most[-1] * KIB <= (SIZE + under_way(workers)) * CELL + TABLES
    assert most[-1] * KIB >= SIZE * SAMPLE, "it is measured at all"


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_ragged_samples_take_as_much_as_the_largest_and_no_more(workers, files):
    """A hundred times as large, at random and growing all the time: cells that are too small are given back."""
    chance = random.Random(3)
    sizes = [chance.randrange(KIB, KIB + (99 * KIB * k) // 300) for k in range(1, 301)]
    largest = 104 * KIB
    with make(Big(sizes), workers, Rotation(3, size=SIZE), collate=as_list) as loader:
        for _ in range(2):
            for batch in loader:
                assert all((sample == sample[0]).all() for sample in batch)
                assert files.kib() * KIB <= (SIZE + under_way(workers)) * largest + TABLES


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_loops_that_are_broken_off_leave_at_most_twice_as_much(workers, kept, files):
    """What was begun and is not used up stands until its place is needed."""
    chance = random.Random(3)
    with make(Big([SAMPLE] * 90), workers, kept) as loader:
        for _ in range(25):
            if chance.random() < 0.5:
                loader.set_epoch(chance.randrange(50))
            for batch in itertools.islice(loader, chance.randrange(1, 20)):
                assert (batch == batch[:, :1]).all()
            assert files.kib() * KIB <= (2 * SIZE + under_way(workers)) * CELL + TABLES
    assert len(files.descriptors) == 1


@pytest.mark.parametrize("workers", [Processes(2), Processes(3, start="fork")], ids=repr)
def test_deaths_leave_no_more(workers, files):
    """Each dies with cells that it was about to fill: whoever comes after it frees them."""
    with make(Big([SAMPLE] * 120), workers, Rotation(3, size=SIZE), max_deaths=100) as loader:
        disturbed = chaos(loader, faults=0.5, seed=4)
        for _ in range(2):
            for batch in disturbed:
                assert (batch == batch[:, :1]).all()
        assert disturbed.survived.total() > 20
        assert files.kib() * KIB <= (2 * SIZE + under_way(workers)) * CELL + TABLES


def test_batches_that_fail_leave_no_more(files):
    """Their uses are not counted."""

    def refuse(samples):
        if chance.random() < 0.5:
            raise ValueError("no")
        return np.stack(samples)

    chance = random.Random(3)
    with make(Big([SAMPLE] * 90), Threads(2), Rotation(3, size=SIZE), collate=refuse) as loader:
        for _ in range(2):
            iterator, ended = iter(loader), False
            while not ended:
                with contextlib.suppress(ValueError):
                    ended = next(iterator, None) is None
                assert files.kib() * KIB <= (2 * SIZE + under_way(Threads(2))) * CELL + TABLES


def test_all_of_it_is_given_back_with_the_loader(kept, files, tmp_path):
    with make(Big([SAMPLE] * 90), Processes(2), kept) as loader:
        next(iter(loader))
        (fd,) = files.descriptors
        assert holders(fd) > 1
    assert holders(fd) == 1, "only the test's own"
    assert list(tmp_path.iterdir()) == []


def holders(fd: int) -> int:
    """Descriptors of that file in this process and its children."""
    wanted, found = os.fstat(fd), 0
    for process in ["self", *map(str, descendants(os.getpid()))]:
        for entry in os.scandir(f"/proc/{process}/fd"):
            try:
                stat = entry.stat()
            except OSError:
                continue
            found += (stat.st_dev, stat.st_ino) == (wanted.st_dev, wanted.st_ino)
    return found


def descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
