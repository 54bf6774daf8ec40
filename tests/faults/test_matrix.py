"""The fault matrix: how a worker dies, in which phase, on which backend. The stream is the same as without it."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import signal

import numpy as np
import pytest

from stoker import Loader, Processes, Threads, WorkerDied
from tests.datasets import Augmented
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(120)  # a hang is a failure

STARTS = ["nursery", "fork", "spawn"]
SAMPLE = 13  # that is made when it happens


def segfault() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(7)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)  # as the OOM killer does


def refuse() -> None:
    raise OSError("the file server had a bad moment")


HOWS = {"SIGKILL": kill, "SIGSEGV": segfault, "exit code 7": leave}
PHASES = ["unpickling", "building", "fetching", "collating", "writing"]


class Fate:
    """Strikes in one phase: always, or only once, which a file remembers."""

    def __init__(self, phase: str, how, marker: str | None) -> None:
        self.phase, self.how, self.marker = phase, how, marker

    def meet(self, phase: str) -> None:
        if phase == self.phase and (self.marker is None or self._is_first(self.marker)):
            self.how()

    @staticmethod
    def _is_first(marker: str) -> bool:
        """In one step: two workers may be at this phase at the same time."""
        try:
            open(marker, "x").close()
        except FileExistsError:
            return False
        return True


class Doomed(Augmented):
    def __init__(self, fate: Fate) -> None:
        self.fate = fate
        if os.getpid() != int(os.environ["CONSUMER"]):
            fate.meet("building")
        super().__init__(40)

    def __setstate__(self, state) -> None:
        state["fate"].meet("unpickling")
        self.__dict__.update(state)

    def __getitem__(self, index: int) -> dict:
        if index == SAMPLE:
            self.fate.meet("fetching")
        return {**super().__getitem__(index), "leaf": Leaf(index, self.fate)}


class Leaf:
    """Is pickled into the slot, behind the arrays."""

    def __init__(self, index: int, fate: Fate | None = None) -> None:
        self.index, self.fate = index, fate

    def __reduce__(self):
        if self.index == SAMPLE and self.fate:
            self.fate.meet("writing")
        return Leaf, (self.index,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and self.index == other.index

    __hash__ = None


class Collate:
    def __init__(self, fate: Fate) -> None:
        self.fate = fate

    def __call__(self, samples):
        if any(sample["index"] == SAMPLE for sample in samples):
            self.fate.meet("collating")
        return {
            "row": np.stack([sample["row"] for sample in samples]),
            "leaves": [sample["leaf"] for sample in samples],
        }


@pytest.fixture(autouse=True)
def _consumer(monkeypatch):
    monkeypatch.setenv("CONSUMER", str(os.getpid()))


@functools.cache
def expected():
    fate = Fate("never", None, None)
    with Loader(Doomed(fate), 5, shuffle=True, collate=Collate(fate)) as loader:
        return epochs(loader, 2)


def make(fate: Fate, workers, **options) -> Loader:
    if fate.phase == "unpickling":
        dataset = Doomed(Fate("never", None, None))
        dataset.fate = fate
    else:
        dataset = functools.partial(Doomed, fate)
    return Loader(dataset, 5, shuffle=True, collate=Collate(fate), workers=workers, **options)


def once(phase: str, how, tmp_path) -> Fate:
    return Fate(phase, how, str(tmp_path / "struck"))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("how", HOWS)
def test_one_death_changes_nothing_and_is_one_line_in_the_log(how, phase, start, tmp_path, caplog):
    """Contract: exactly once, whatever dies."""
    if (phase, start) == ("unpickling", "fork"):
        pytest.skip("nothing is pickled for a fork")
    with make(once(phase, HOWS[how], tmp_path), Processes(2, start=start)) as loader:
        assert_same(epochs(loader, 2), expected())
    (line,) = [record.message for record in caplog.records]
    assert re.match(rf"worker \d died by {re.escape(how)}", line)
    if phase in ("unpickling", "building"):
        assert "while it made the dataset" in line
    else:
        batch = re.search(r"while working on the batch at position \d+ of epoch 0 \(samples ([\d, ]+)\)", line)
        assert str(SAMPLE) in batch[1].split(", ")
    assert "likely cause" in line
    assert (tmp_path / "struck").exists()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("phase", ["unpickling", "building"])
def test_an_exception_while_the_dataset_is_made_may_pass(phase, start, tmp_path):
    if (phase, start) == ("unpickling", "fork"):
        pytest.skip("nothing is pickled for a fork")
    with make(once(phase, refuse, tmp_path), Processes(2, start=start)) as loader:
        assert_same(epochs(loader, 2), expected())
    assert (tmp_path / "struck").exists()


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("phase", PHASES)
def test_what_kills_every_worker_ends_in_one_clear_error(phase, start):
    if (phase, start) == ("unpickling", "fork"):
        pytest.skip("nothing is pickled for a fork")
    with make(Fate(phase, leave, None), Processes(2, start=start)) as loader:
        with pytest.raises(WorkerDied, match="exit code 7") as caught:
            epochs(loader, 1)
        if phase in ("unpickling", "building"):
            assert "while it made the dataset" in str(caught.value)
            assert list(caught.value.indices) == []
        else:
            assert "3 times" in str(caught.value)
            assert SAMPLE in caught.value.indices
            assert str(SAMPLE) in str(caught.value)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("phase", ["unpickling", "building"])
def test_a_dataset_that_always_raises_fails_with_its_own_error(phase, start):
    if (phase, start) == ("unpickling", "fork"):
        pytest.skip("nothing is pickled for a fork")
    with make(Fate(phase, refuse, None), Processes(2, start=start)) as loader:
        with pytest.raises(OSError, match="bad moment"):
            epochs(loader, 1)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("phase", ["fetching", "collating", "writing"])
def test_by_policy_the_very_sample_is_found_and_left_out(phase, start):
    with make(Fate(phase, leave, None), Processes(2, start=start), on_error="skip") as loader:
        (got,) = epochs(loader, 1)
    leaves = [leaf.index for batch in got for leaf in batch["leaves"]]
    wanted = [leaf.index for batch in expected()[0] for leaf in batch["leaves"]]
    wanted.remove(SAMPLE)
    assert leaves == wanted


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_idle_workers_may_die_all_at_once(number, start):
    """Killed from outside while the consumer is at something else."""
    fate = Fate("never", None, None)
    with make(fate, Processes(3, start=start)) as loader:
        got = [[]]
        for step, batch in enumerate(loader):
            got[0].append({"row": batch["row"].copy(), "leaves": batch["leaves"]})
            if step == 3:
                for pid in loader.worker_pids:
                    os.kill(pid, number)
        got.extend(epochs(loader, 1))
        assert_same(got, expected())


@pytest.mark.parametrize("start", ["nursery", "spawn"])
def test_a_process_that_dies_while_it_starts_is_started_again(start, tmp_path, monkeypatch):
    """An interpreter is killed before a line of ours has run: the nursery itself, or a spawned worker."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        f"if not os.path.exists({str(tmp_path / 'struck')!r}):\n"
        f"    open({str(tmp_path / 'struck')!r}, 'x').close()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with make(Fate("never", None, None), Processes(2, start=start)) as loader:
        assert_same(epochs(loader, 2), expected())
    assert (tmp_path / "struck").exists()


def test_a_fork_that_dies_at_once_is_forked_again(tmp_path):
    struck, consumer = tmp_path / "struck", os.getpid()
    armed = [True]

    def die_once() -> None:
        if armed and os.getppid() == consumer and not struck.exists():
            struck.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    os.register_at_fork(after_in_child=die_once)
    try:
        with make(Fate("never", None, None), Processes(2, start="fork")) as loader:
            assert_same(epochs(loader, 2), expected())
    finally:
        armed.clear()
    assert struck.exists()


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, KeyboardInterrupt])
def test_threads_do_not_end_on_what_would_end_a_thread(error):
    class Leaving(Augmented):
        def __getitem__(self, index):
            if index == SAMPLE:
                raise error
            return super().__getitem__(index)

    with Loader(Leaving(40), 5, workers=Threads(2)) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        with pytest.raises(RuntimeError, match=error.__name__):
            next(iterator)
        assert len(list(iterator)) == 5
