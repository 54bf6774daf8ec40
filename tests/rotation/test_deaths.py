"""Deaths while samples rotate: in every phase and at every line, the stream is the same as without them."""

from __future__ import annotations

import functools
import os
import random
import signal
import threading

import numpy as np
import pytest

from stoker import Cache, Loader, Processes, Rotation, WorkerDied
from stoker.testing import assert_survives
from tests.children import nurseries
from tests.datasets import Augmented, Rows
from tests.faults import test_matrix as matrix
from tests.rotation.stepping import Stepping
from tests.streams import assert_same, epochs

pytestmark = [pytest.mark.timeout(120), pytest.mark.cold_nursery]  # a hang is a failure; it is killed here

STARTS = ["nursery", "fork"]  # a spawned one works as they do
LINES = 1500  # of the stores, roughly, that a worker goes through in two epochs of ``walk``


# In every phase


@pytest.fixture(autouse=True)
def _consumer(monkeypatch):
    monkeypatch.setenv("CONSUMER", str(os.getpid()))


@functools.cache
def doomed():
    with matrix.make(matrix.Fate("never", None, None), 0, rotation=Rotation(3, size=9)) as loader:
        return epochs(loader, 2)


@pytest.mark.parametrize(("how", "start"), [(how, "fork") for how in matrix.HOWS] + [("SIGKILL", "nursery")])
@pytest.mark.parametrize("phase", ["building", "fetching", "collating", "writing"])
def test_one_death_in_any_phase_changes_nothing(how, phase, start, tmp_path):
    fate = matrix.once(phase, matrix.HOWS[how], tmp_path)
    with matrix.make(fate, Processes(2, start=start), rotation=Rotation(3, size=9)) as loader:
        assert_same(epochs(loader, 2), doomed())
    assert (tmp_path / "struck").exists()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("phase", ["fetching", "collating", "writing"])
def test_by_policy_the_very_sample_is_left_out_at_each_use(phase, start):
    """Sample 13 kills whoever makes, keeps or collates it."""
    fate = matrix.Fate(phase, matrix.leave, None)
    workers = Processes(2, start=start)
    with matrix.make(fate, workers, rotation=Rotation(2, size=9), on_error="skip", max_deaths=1) as loader:
        (got,) = epochs(loader, 1)
        assert loader.stats().skipped == 2
    with matrix.make(matrix.Fate("never", None, None), 0, rotation=Rotation(2, size=9)) as oracle:
        (wanted,) = epochs(oracle, 1)
    leaves = [leaf.index for batch in wanted for leaf in batch["leaves"] if leaf.index != matrix.SAMPLE]
    assert [leaf.index for batch in got for leaf in batch["leaves"]] == leaves


@pytest.mark.parametrize("kind", ["cache", "rotation"])
@pytest.mark.parametrize("batch_size", [1, None])
def test_a_batch_of_which_nothing_is_left_is_left_out(kind, batch_size, tmp_path):
    class Deadly(Rows):
        def __getitem__(self, index):
            if index == 2:
                os._exit(7)
            return super().__getitem__(index)

    kept = {"cache": Cache(tmp_path)} if kind == "cache" else {"rotation": Rotation(2, size=4)}
    options = {"workers": Processes(2, start="fork"), "on_error": "skip", "max_deaths": 1}
    with Loader(Deadly(4), batch_size, **options, **kept) as loader:
        got = [int(batch.flat[0]) for batch in loader]
    assert got == [0, 1, 3] * (2 if kind == "rotation" else 1)


def test_what_kills_every_worker_is_an_error_in_the_turn_of_each_use():
    class Deadly(Rows):
        def __getitem__(self, index):
            if index == 5:
                os._exit(7)
            return super().__getitem__(index)

    with Loader(Deadly(12), 3, workers=Processes(2), rotation=Rotation(2, size=6), max_deaths=2) as loader:
        iterator, came = iter(loader), []
        for _ in range(8):
            try:
                came.append(next(iterator)[:, 0].tolist())
            except WorkerDied as error:
                came.append(("exit code 7" in str(error), *error.indices))
    assert came == [[0, 1, 2], (True, 3, 4, 5)] * 2 + [[6, 7, 8], [9, 10, 11]] * 2


# At every line


def walk(struck: str, line: int):
    """Workers that wait for each other, blocks that change, cells that are too small."""
    dataset = functools.partial(Stepping, struck, line, 16)
    return Loader(dataset, 3, shuffle=True, workers=Processes(2, start="fork"), rotation=Rotation(3, size=4))


@functools.cache
def walked():
    with Loader(Augmented(16), 3, shuffle=True, rotation=Rotation(3, size=4)) as oracle:
        return epochs(oracle, 2)


@pytest.mark.parametrize("part", range(2))
def test_a_death_at_any_line_of_the_protocol_changes_nothing(part, tmp_path):
    chance = random.Random(part)
    where = []
    for line in [part + 1, *(chance.randrange(1, LINES) for _ in range(14))]:
        struck = tmp_path / str(line)
        with walk(str(struck), line) as loader:
            assert_same(epochs(loader, 2), walked())
        where.append(struck.read_text() if struck.exists() else "")
    assert sum(map(bool, where)) >= 10, "lines are counted at all"


# At any time


@pytest.mark.parametrize("workers", [Processes(3), Processes(2, start="fork"), Processes(4, start="fork")], ids=repr)
@pytest.mark.parametrize("in_order", [True, False])
def test_random_faults_change_nothing(workers, in_order):
    def make():
        return Loader(
            Augmented(120),
            4,
            shuffle=True,
            workers=workers,
            rotation=Rotation(3, size=10),
            in_order=in_order,
            max_deaths=50,
        )

    assert_survives(make, faults=0.4, epochs=2, in_order=in_order, seed=workers.n)


def test_on_disk_too(tmp_path):
    assert_survives(
        lambda: Loader(
            Augmented(60),
            4,
            workers=Processes(2, start="fork"),
            rotation=Rotation(3, "disk", 10, tmp_path),
            max_deaths=50,
        ),
        faults=0.4,
    )
    assert list(tmp_path.iterdir()) == []


def test_the_nursery_itself_may_die():
    with Loader(Augmented(40), 4, rotation=Rotation(3, size=10)) as oracle:
        wanted = epochs(oracle, 1)
    with Loader(Augmented(40), 4, workers=Processes(2), rotation=Rotation(3, size=10)) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append({key: value.copy() for key, value in batch.items()})
            if step in (4, 15):
                for nursery in nurseries():  # batches that were ready may bring us to 15 before the first is missed
                    nursery.kill()
        assert_same([got], wanted)


# While others wait


class Gated(Rows):
    """Sample 0, the first time it is made, says who makes it and then takes until the gate is opened."""

    def __init__(self, folder) -> None:
        super().__init__(4)
        self.maker, self.gate = str(folder / "maker"), str(folder / "gate")

    def __getitem__(self, index: int) -> np.ndarray:
        if index == 0 and not os.path.exists(self.maker):
            with open(self.maker + ".part", "w") as file:
                file.write(str(os.getpid()))
            os.rename(self.maker + ".part", self.maker)
            with open(self.gate, "rb", 0) as gate:  # a FIFO
                gate.read(1)  # not to its end: a fork may have a copy of the other side
        return super().__getitem__(index)


def waiters(inode: int) -> int:
    """How many wait for a lock on that file."""
    with open("/proc/locks") as locks:
        return sum("->" in line and f":{inode} " in line for line in locks)


def until(condition) -> None:
    while not condition():
        os.sched_yield()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("victim", ["maker", "waiter", "both"])
def test_who_waits_for_one_that_is_killed_makes_it_itself(victim, start, tmp_path, monkeypatch):
    """Two batches need sample 0 at once: one worker makes it, the other waits. Then one is killed, or both are."""
    gate, maker = tmp_path / "gate", tmp_path / "maker"
    os.mkfifo(gate)
    inodes, new_file = [], Rotation.new_file

    def noted(self: Rotation) -> int:
        fd = new_file(self)
        inodes.append(os.fstat(fd).st_ino)
        return fd

    monkeypatch.setattr(Rotation, "new_file", noted)
    with Loader(Gated(tmp_path), 1, workers=Processes(2, start=start), rotation=Rotation(2, size=1)) as loader:
        iterator = iter(loader)

        def strike() -> None:
            until(lambda: maker.exists() and inodes and waiters(inodes[0]) >= 1)
            making = int(maker.read_text())
            pids = loader.worker_pids
            assert making in pids
            for pid in pids:
                if victim == "both" or (pid == making) == (victim == "maker"):
                    os.kill(pid, signal.SIGKILL)
            if victim == "waiter":
                gate.write_bytes(b"x")

        striking = threading.Thread(target=strike)
        striking.start()
        got = [int(batch[0, 0]) for batch in iterator]
        striking.join()
    assert got == [0, 0, 1, 1, 2, 2, 3, 3]
