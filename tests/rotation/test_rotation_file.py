"""The rotation's file itself: claims, cells, and what becomes of a cell while somebody reads from it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from stoker.memory import anonymous_file
from stoker.stores import rotation_cells
from stoker.stores.claims import Abandoned
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from stoker.stores.rotation_file import RotationFile
from stoker.stores.shared_samples import collect

ROOT = Path(__file__).parents[2]
MANY = 10**6  # uses


@pytest.fixture
def file():
    fd = anonymous_file()
    yield fd
    os.close(fd)


@pytest.fixture
def opened(file):
    """Makes some over one file, each as a worker has it."""
    made = []

    def open_one(places: int = 8, *, copies: bool = False, no_room=lambda: None) -> RotationFile:
        made.append(
            RotationFile(file, places, RecordEncoder("pickle"), RecordDecoder("pickle", copies=copies), no_room)
        )
        return made[-1]

    yield open_one
    while made:
        made.pop().close()


def put(rotation_file: RotationFile, *samples) -> None:
    """As ``(key, sample)``."""
    with rotation_file.claiming([key for key, _ in samples]) as claims:
        assert list(claims.mine) == [key for key, _ in samples]
        for key, sample in samples:
            rotation_file.put(key, sample)


def count(rotation_file: RotationFile, *keys: int, uses: int = 1, in_all: int = 2) -> bool:
    return rotation_file.count(list(keys), np.full(len(keys), uses), np.full(len(keys), in_all))


def use_up(rotation_file: RotationFile, key: int) -> None:
    rotation_file.begin()
    assert count(rotation_file, key, uses=MANY)


def test_what_one_has_put_another_reads(opened):
    one, other = opened(), opened()
    put(one, (0, np.arange(3)), (1, {"text": "b", "number": 1}))
    found = other.look([0, 1, 2])
    assert list(found) == [0, 1]
    assert found[0].tolist() == [0, 1, 2]
    assert found[1] == {"text": "b", "number": 1}


def test_a_sample_goes_with_its_last_use_and_not_before(opened):
    one, other = opened(), opened()
    put(one, (0, np.arange(3)))
    for rotation_file in (one, other, one):
        assert list(rotation_file.look([0])) == [0]
        assert count(rotation_file, 0, in_all=3)
    assert other.look([0]) == {}


def test_a_claim_is_one_workers_and_others_are_told_whose(opened):
    one, other = opened(), opened()
    with one.claiming([0, 1]) as mine:
        with other.claiming([1, 2]) as theirs:
            assert list(mine.mine) == [0, 1]
            assert mine.other is None
            assert list(theirs.mine) == [2]
            assert theirs.other is not None


def test_what_was_claimed_and_not_put_may_be_claimed_by_others(opened):
    one, other = opened(), opened()
    with one.claiming([0, 1]):
        pass
    with other.claiming([0, 1]) as theirs:
        assert list(theirs.mine) == [0, 1]


@pytest.mark.parametrize("copies", [False, True])
def test_a_batch_whose_cell_became_anothers_does_not_count(opened, copies):
    one, other = opened(copies=copies), opened()
    put(one, (0, np.zeros(3)))
    one.begin()
    one.look([0])
    use_up(other, 0)
    put(other, (1, np.ones(3)))
    assert not count(one, 0)
    assert count(other, 1)


def test_a_batch_whose_cell_became_anothers_and_then_its_own_again_does_not_count(opened):
    """Half of what it read may be the other's."""
    one, other = opened(), opened()
    put(one, (0, np.zeros(3)))
    one.begin()
    one.look([0])
    for key, sample in ((1, np.ones(3)), (0, np.zeros(3))):
        use_up(other, 1 - key)
        put(other, (key, sample))
    assert not count(one, 0)


class Bomb:
    """Code, when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def image_of_code(sample: dict, marker: Path) -> np.ndarray:
    """An array that has code where that sample has its objects, and a length that leads to it at the end."""
    nbytes, begin = RecordEncoder("pickle").record(sample).nbytes, sample["data"].nbytes
    image = np.zeros(nbytes, np.uint8)
    code = np.frombuffer(pickle.dumps([Bomb(marker)]), np.uint8)
    image[begin : begin + len(code)] = code
    image[-4:] = np.frombuffer((nbytes - 4 - begin).to_bytes(4, "little"), np.uint8)
    return image


@pytest.mark.parametrize("is_known", [True, False], ids=["a known form", "a new form"])
@pytest.mark.parametrize("copies", [True, False], ids=["copies", "views"])
def test_what_lies_in_a_cell_that_became_anothers_is_not_interpreted(opened, tmp_path, copies, is_known, monkeypatch):
    """The bytes of an image are data, wherever they lie, and whatever they would mean if they were unpickled."""
    one, other = opened(copies=copies), opened()
    sample = {"data": np.zeros(4096, np.uint8), "text": "x" * 3000}
    put(one, (0, sample))
    if is_known:
        one.look([0])
    memory = one._cells.memory

    def too_late(end):
        """Between the look at the table and the look at the cell."""
        use_up(other, 0)
        put(other, (1, image_of_code(sample, tmp_path / "exploded")))
        return memory(end)

    one.begin()
    monkeypatch.setattr(one._cells, "memory", too_late)
    assert one.look([0]) == {}
    assert not (tmp_path / "exploded").exists()
    monkeypatch.undo()
    assert list(one.look([1])) == [1]


def test_one_that_is_given_up_lets_go_of_its_claims_and_claims_no_more(opened):
    """Nobody watches it any more: whoever waited for what it claimed now would wait for ever."""
    one, other = opened(), opened()
    with one.claiming([0, 1]):
        one.abandon()
        with other.claiming([0, 1]) as theirs:
            assert list(theirs.mine) == [0, 1]
            one.put(0, "too late")
            other.put(0, "in time")
    assert other.look([0, 1]) == {0: "in time"}
    with pytest.raises(Abandoned):
        collect(one, [1], lambda key: pytest.fail("it was given up"), lambda: None)
    put(other, (1, "later"))
    assert other.look([0, 1]) == {0: "in time", 1: "later"}


def test_the_cells_of_one_that_is_given_up_are_its_own_until_it_returns_them(opened):
    """It may be in the middle of writing into one."""
    one, other = opened(), opened()
    put(other, (0, np.zeros(3)))
    use_up(other, 0)
    with one.claiming([1]):  # the cell that has become free
        one.abandon()
        opened()  # frees what the dead hold
        put(other, (2, np.ones(3)))
        one.put(1, np.full(3, 9.0))
        assert other.look([2])[2].tolist() == [1, 1, 1]
    put(other, (3, np.full(3, 3.0)), (4, np.full(3, 4.0)))
    assert [array[0] for array in other.look([2, 3, 4]).values()] == [1, 3, 4]


def test_to_give_up_one_that_is_changing_the_tables_is_to_wait_until_it_has(file, opened, monkeypatch):
    """Both are of one process: locks through the same description would not keep them apart."""
    inside, go_on = threading.Event(), threading.Event()

    def allocate(*_) -> None:
        inside.set()
        go_on.wait()
        raise MemoryError

    one = opened()
    monkeypatch.setattr(rotation_cells, "allocate", allocate)
    worker = threading.Thread(target=put, args=(one, (0, "sample")))
    worker.start()
    inside.wait()
    giving_up = threading.Thread(target=one.abandon)
    giving_up.start()
    while not is_waited_for(file):
        os.sched_yield()
    assert giving_up.is_alive()
    go_on.set()
    for thread in (worker, giving_up):
        thread.join()
    with opened().claiming([0]) as claims:
        assert list(claims.mine) == [0]


def is_waited_for(file: int) -> bool:
    """Whether somebody waits for a lock on it."""
    with open("/proc/locks") as locks:
        return any("->" in line and f":{os.fstat(file).st_ino} " in line for line in locks)


@pytest.mark.parametrize(
    ("places", "uses", "kills"),
    [
        pytest.param(64, 3, 0, id="cells change hands", marks=pytest.mark.exhaustive),
        pytest.param(64, 2, 80, id="kills"),
        pytest.param(8, 3, 40, id="few places", marks=pytest.mark.exhaustive),
        pytest.param(64, MANY, 40, id="nothing is used up", marks=pytest.mark.exhaustive),
    ],
)
def test_no_read_is_torn_however_many_hammer_it_and_die(places, uses, kills):
    """Each sample says by its content which key it belongs to."""
    arguments = ["7", str(places), str(uses), str(kills), "1500"]
    command = [sys.executable, "-m", "tests.rotation.hammer", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert figures["wrong"] == []
    assert figures["kills"] == kills
    if places == 64:
        assert figures["twice"] == 0, "two have made the same sample at the same time"
    if uses == MANY:
        assert figures["again"] == 0
        assert figures["made"] <= 1500 / 5 + 24 + 10 * kills
    bound = (places + 6) * 16 + 64  # KiB: each cell is as big as the biggest sample, at most
    assert figures["kib"] <= bound


@pytest.mark.parametrize("first", [1, *[pytest.param(k, marks=pytest.mark.exhaustive) for k in (2, 3)]])
def test_a_death_at_any_line_leaves_it_whole(first):
    """Here at each third."""
    command = [sys.executable, "-m", "tests.rotation.lines", str(first), "3"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert figures["wrong"] is None
    assert figures["lines"] > 200, "they are counted at all"


def test_a_thread_that_waits_goes_on_when_the_other_is_done(opened):
    one, other = opened(), opened()
    claimed, found = threading.Event(), []

    def wait() -> None:
        claimed.wait()
        found.append(collect(other, [0], lambda key: pytest.fail("it was claimed"), lambda: None).samples[0])

    thread = threading.Thread(target=wait)
    thread.start()
    with one.claiming([0]):
        claimed.set()
        one.put(0, "made once")
    thread.join()
    assert found == ["made once"]
