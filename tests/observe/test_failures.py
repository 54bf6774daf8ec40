"""Samples that fail are left out, just they: counted, limited, written down, and the same on every backend."""

from __future__ import annotations

import functools
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

from stoker import Inline, Loader, Processes, Threads, TooManyErrors
from stoker.sources import IndexedSource
from tests.datasets import Augmented, Failing, Rows
from tests.streams import assert_same, epochs, kept

STARTS = ["nursery", "fork", "spawn"]
KINDS = ["value", "arguments", "unpicklable", "local", "os", "stop"]


class Patchy(Rows):
    """Raises for some indices."""

    def __init__(self, n: int = 40, bad: tuple[int, ...] | list[int] = (13,)) -> None:
        super().__init__(n)
        self.bad = frozenset(bad)

    def __getitem__(self, index: int) -> np.ndarray:
        if index in self.bad:
            raise ValueError(f"sample {index} is bad")
        return self.data[index]


class Moody(Augmented):
    """Raises for some indices always, and for others when the numbers drawn are such."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index % 9 == 4 or np.random.rand() < 0.1:
            raise RuntimeError(f"in no mood for {index}")
        return sample


class Fatal(Rows):
    """Ends its worker at some indices, hangs at others, raises at yet others."""

    def __init__(self, n: int = 40, *, deadly=(), endless=(), bad=()) -> None:
        super().__init__(n)
        self.deadly, self.endless, self.bad = deadly, endless, bad

    def __getitem__(self, index: int) -> np.ndarray:
        if index in self.deadly:
            os._exit(3)
        if index in self.endless:
            time.sleep(600)
        if index in self.bad:
            raise ValueError(f"sample {index} is bad")
        return self.data[index]


class FatalTogether(Fatal):
    """The same, where whole batches are asked for."""

    def __getitems__(self, indices: list[int]) -> list[np.ndarray]:
        return [self[index] for index in indices]


def taken(batches) -> list[int]:
    """The indices of all samples, in order."""
    return [int(index) for batch in batches for index in np.reshape(batch, (-1, 4))[:, 0]]


def but(*left_out: int, n: int = 40) -> list[int]:
    return [index for index in range(n) if index not in left_out]


def lines(file) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def logged(caplog, words: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if words in record.getMessage()]


# Left out: just they, and everywhere alike


@pytest.mark.parametrize("batch_size", [None, 1, 5, 40])
def test_a_sample_that_fails_is_left_out_and_no_other(backend, batch_size):
    with Loader(Failing(40), batch_size, workers=backend, on_error="skip") as loader:
        for _ in range(2):
            assert taken(loader) == but(13)
        assert loader.stats().skipped == 2
        assert loader.stats().samples == 78
        assert len(loader) == -(-40 // (batch_size or 1))


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_error_will_do(backend, kind):
    with Loader(Failing(40, kind), 5, workers=backend, on_error="skip") as loader:
        assert taken(loader) == but(13)


def test_a_sample_that_leaves_the_program_is_left_out_too(backend):
    class Leaving(Rows):
        def __getitem__(self, index):
            return sys.exit(4) if index == 13 else self.data[index]

    with Loader(Leaving(40), 5, workers=backend, on_error="skip") as loader:
        assert taken(loader) == but(13)


@pytest.mark.xfail(run=False, reason="workers/worker.py, _told: str(error) may raise, and then the batch is lost")
def test_an_error_that_cannot_even_be_told_is_left_out_too(backend, tmp_path):
    class Untellable(Rows):
        def __getitem__(self, index):
            class Dumb(Exception):
                def __str__(self):
                    raise RuntimeError("no words")

            if index == 13:
                raise Dumb
            return self.data[index]

    file = tmp_path / "q.jsonl"
    with Loader(Untellable(40), 5, workers=backend, on_error="quarantine", quarantine=file) as loader:
        assert taken(loader) == but(13)
    (record,) = lines(file)
    assert record["error"].startswith("Dumb: ")


def test_a_batch_of_which_nothing_is_left_does_not_come(backend):
    dataset = Patchy(40, [10, 11, 12, 13, 14, 17])
    with Loader(dataset, 5, workers=backend, on_error="skip") as loader:
        sizes = [len(batch) for batch in loader]
    assert sizes == [5, 5, 4, 5, 5, 5, 5]


def test_errors_of_collate_are_raised_all_the_same(backend):
    def picky(samples):
        if any(sample[0] == 13 for sample in samples):
            raise KeyError("not this one")
        return np.stack(samples)

    with Loader(Rows(40), 5, workers=backend, on_error="skip", collate=picky) as loader:
        with pytest.raises(KeyError, match="not this one"):
            list(loader)


def test_the_stream_is_the_same_on_every_backend(backend):
    """Contract: what fails is part of the stream, also where it depends on random numbers."""

    def make(workers, **options):
        return Loader(Moody(60), 7, shuffle=True, workers=workers, on_error="skip", **options)

    with make(Inline()) as oracle:
        expected = epochs(oracle, 3)
        skipped = oracle.stats().skipped
    with make(backend) as loader:
        assert_same(epochs(loader, 3), expected)
        assert loader.stats().skipped == skipped > 18
    with make(backend, in_order=False) as loader:
        for epoch in expected:
            found = Counter(index for batch in loader for index in batch["index"].tolist())
            assert found == Counter(index for batch in epoch for index in batch["index"].tolist())


def test_the_stream_goes_on_after_a_resume_at_each_step(backend):
    def make(workers):
        return Loader(Moody(30), 4, shuffle=True, workers=workers, on_error="skip", seed=5)

    with make(Inline()) as oracle:
        stream = [batch for epoch in epochs(oracle, 2) for batch in epoch]
    states = []
    with make(backend) as loader:
        for _ in range(2):
            for _ in loader:
                states.append(json.loads(json.dumps(loader.state_dict())))
    assert max(state["skipped"] for state in states) > 3
    with make(Inline() if backend != Inline() else Threads(2)) as loader:
        for step, state in enumerate(states, 1):
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            rest = [kept(batch) for batch in loader]
            if loader.epoch == 1:
                rest += epochs(loader, 1)[0]
            assert_same(rest, stream[step:] if step < len(stream) else rest)


def test_where_whole_batches_are_asked_for_one_that_fails_is_asked_for_one_by_one(backend):
    class Gathered(Patchy):
        def __getitems__(self, indices):
            return [Patchy.__getitem__(self, index) for index in indices]

    with Loader(Gathered(40, [3, 13, 14]), 5, workers=backend, on_error="skip") as loader:
        assert taken(loader) == but(3, 13, 14)


# How many


@pytest.mark.parametrize(
    ("limit", "passes"), [(3, True), (2, False), (0, False), (0.075, True), (0.07, False), (1.0, True)]
)
def test_the_limit_is_a_count_or_a_share_of_the_epoch(backend, limit, passes):
    """Per epoch: the count begins anew with each."""
    with Loader(Patchy(40, [3, 13, 33]), 5, workers=backend, on_error="skip", max_errors=limit) as loader:
        if passes:
            assert [taken(loader) for _ in range(3)] == [but(3, 13, 33)] * 3
        else:
            with pytest.raises(TooManyErrors):
                list(loader)


@pytest.mark.parametrize("percent", range(101))
def test_a_share_is_rounded_down_but_not_below_what_was_written(percent):
    """0.29 * 100 is 28.999999999999996."""
    with Loader(Patchy(100, range(percent)), 5, on_error="skip", max_errors=percent / 100) as loader:
        assert taken(loader) == but(*range(percent), n=100)
    if percent < 100:
        with Loader(Patchy(100, range(percent + 1)), 5, on_error="skip", max_errors=percent / 100) as loader:
            with pytest.raises(TooManyErrors, match=rf"{percent + 1} of 100 samples of epoch 0 failed; {percent} may"):
                list(loader)


@pytest.mark.parametrize(
    ("n", "options", "samples"),
    [
        (43, {}, 22),
        (43, {"drop_last": True}, 20),
        (40, {}, 20),
        (4, {}, 2),
        (41, {"batch_size": None}, 21),
    ],
)
def test_a_share_is_of_the_samples_that_this_shard_gets(n, options, samples):
    for shard in (0, 1):
        settings = {"batch_size": 5, "shard": (shard, 2), "on_error": "skip", "max_errors": 0.0} | options
        with Loader(Patchy(n, range(n)), **settings) as loader, pytest.raises(TooManyErrors) as caught:
            list(loader)
        assert f" of {samples - (shard == 0 and n == 43 and not options)} samples" in str(caught.value)


def test_the_error_has_figures_and_a_remedy_and_tells_how_the_last_one_failed(backend):
    with Loader(Patchy(40, [3, 13, 33]), 5, workers=backend, on_error="skip", max_errors=0.05) as loader:
        iterator = iter(loader)
        before = [kept(next(iterator)) for _ in range(6)]
        with pytest.raises(TooManyErrors) as caught:
            next(iterator)
        assert taken(before) == but(3, 13)[:28]
        assert str(caught.value) == (
            "3 of 40 samples of epoch 0 failed; 2 may (max_errors=0.05). The last one was 33: "
            "ValueError: sample 33 is bad. Mend the dataset, or raise max_errors"
        )
        (note,) = caught.value.__notes__
        assert note.startswith("stoker: how sample 33 failed:\nTraceback (most recent call last)")
        assert "in __getitem__" in note
        assert taken(iterator) == [35, 36, 37, 38, 39]  # whoever goes on passes over that batch


def test_a_dataset_that_fails_wholly_is_an_error_unless_all_may_fail(backend):
    dataset = Patchy(20, range(20))
    with Loader(dataset, 5, workers=backend, on_error="skip") as loader:
        with pytest.raises(TooManyErrors, match=r"20 of 20 samples of epoch 0 failed; 19 may \(all but one\)"):
            list(loader)
    with Loader(dataset, 5, workers=backend, on_error="skip", max_errors=1.0) as loader:
        assert [list(loader) for _ in range(2)] == [[], []]
        assert loader.epoch == 2
        assert loader.stats().skipped == 40


def test_the_count_is_carried_over_a_resume(backend):
    settings = {"workers": backend, "on_error": "skip", "max_errors": 3}
    dataset = Patchy(40, [1, 2, 21, 32])
    with Loader(dataset, 5, **settings) as loader:
        iterator = iter(loader)
        assert loader.state_dict()["skipped"] == 0
        next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["skipped"] == 2
    with Loader(dataset, 5, **settings) as loader:
        loader.load_state_dict(state)
        with pytest.raises(TooManyErrors, match="4 of 40 samples of epoch 0 failed; 3 may"):
            list(loader)
        again = loader.state_dict()
        assert again["skipped"] == 3
        loader.load_state_dict(again)  # leads to the same batch
        with pytest.raises(TooManyErrors, match="4 of 40"):
            next(iter(loader))
    with Loader(Patchy(40, [21, 32]), 5, **settings) as loader:
        loader.set_epoch(1)  # another epoch: another count
        assert taken(loader) == but(21, 32)


def test_only_the_first_few_are_logged_one_by_one(caplog):
    with Loader(Patchy(300, range(0, 260, 2)), 5, on_error="skip") as loader:
        list(loader)
    assert len(logged(caplog, "skipped sample")) == 20 + 1
    assert logged(caplog, "skipped sample")[0] == "skipped sample 0 of epoch 0: ValueError: sample 0 is bad"
    assert len(logged(caplog, "only every hundredth")) == 1


# The file


def test_each_sample_is_written_down_in_a_line_of_its_own(backend, tmp_path):
    file = tmp_path / "q.jsonl"
    dataset = functools.partial(Patchy, 40, bad=[3, 13, 14])
    with Loader(dataset, 5, workers=backend, on_error="quarantine", quarantine=file) as loader:
        for epoch in range(2):
            assert taken(loader) == but(3, 13, 14)
            assert len(lines(file)) == 3 * (epoch + 1)
        plan = loader._plan
    places = {3: 0, 13: 10, 14: 10}
    expected = [
        {
            "index": index,
            "epoch": epoch,
            "error": f"ValueError: sample {index} is bad",
            "seed": plan.batch_seed(plan.batch(epoch, place)),
            "dataset": {"make": "tests.observe.test_failures:Patchy", "args": [40], "kwargs": {"bad": [3, 13, 14]}},
        }
        for epoch in range(2)
        for index, place in places.items()
    ]
    written = lines(file)
    for record in written:
        told = record.pop("traceback")
        assert told.startswith("Traceback (most recent call last):\n")
        assert told.endswith(f"ValueError: sample {record['index']} is bad\n")
        assert "test_failures.py" in told
    assert written == expected


def test_what_was_made_ahead_and_not_taken_is_not_written_down(tmp_path):
    file = tmp_path / "q.jsonl"
    with Loader(Patchy(40, [3, 8]), 5, workers=2, on_error="quarantine", quarantine=file) as loader:
        next(iter(loader))
    assert [record["index"] for record in lines(file)] == [3]


def test_by_default_it_lies_in_the_folder_where_the_loader_was_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Loader(Patchy(40), 5, on_error="quarantine") as loader:
        list(loader)
    assert len(lines(tmp_path / "quarantine.jsonl")) == 1


def test_a_good_dataset_makes_no_file(tmp_path):
    file = tmp_path / "q.jsonl"
    with Loader(Rows(40), 5, on_error="quarantine", quarantine=str(file)) as loader:
        list(loader)
    assert not file.exists()


def test_any_text_makes_one_line_of_valid_json(tmp_path):
    class Wild(Rows):
        def __getitem__(self, index):
            raise ValueError('two\nlines, \u2028 a "quote", \ud800 half a character, \x00 and ' + "x" * 100_000)

    file = tmp_path / "q.jsonl"
    with Loader(Wild(3), 1, on_error="quarantine", quarantine=file, max_errors=1.0) as loader:
        list(loader)
    content = file.read_bytes()
    assert content.isascii()
    assert content.count(b"\n") == 3
    assert all("\ud800 half" in record["error"] for record in lines(file))


def test_several_loaders_may_append_to_one_file_at_once(tmp_path):
    file = tmp_path / "q.jsonl"
    script = (
        "import sys, stoker\n"
        "from tests.observe.test_failures import Patchy\n"
        "options = dict(on_error='quarantine', quarantine=sys.argv[1], max_errors=1.0, shard=(int(sys.argv[2]), 3))\n"
        "with stoker.Loader(Patchy(600, range(600)), 4, **options) as loader:\n"
        "    input()\n"
        "    list(loader)\n"
    )
    command = [sys.executable, "-c", script, str(file)]
    running = [subprocess.Popen([*command, str(shard)], stdin=subprocess.PIPE, text=True) for shard in range(3)]
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert Counter(record["index"] for record in lines(file)) == Counter(range(600))


@pytest.mark.parametrize("kind", ["a folder", "no such folder", "a full disk"])
def test_a_file_that_cannot_be_written_is_told_once_and_samples_are_skipped_all_the_same(kind, tmp_path, caplog):
    file = {"a folder": tmp_path, "no such folder": tmp_path / "none" / "q.jsonl", "a full disk": "/dev/full"}[kind]
    with Loader(Patchy(40, [3, 13, 33]), 5, workers=1, on_error="quarantine", quarantine=file) as loader:
        assert taken(loader) == but(3, 13, 33)
    (told,) = logged(caplog, f"cannot write to the quarantine file {file}: ")
    assert "Samples are skipped all the same." in told
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1


class Maker:
    def __call__(self):
        return Patchy()

    def make(self, n):
        return Patchy(n)

    @classmethod
    def of(cls, n):
        return Patchy(n)


def test_the_dataset_is_told_such_that_it_can_be_made_again_or_not_at_all():
    here = "tests.observe.test_failures"

    def references(dataset):
        return IndexedSource.of(dataset).reference()

    def made(name, *args, **kwargs):
        return {"make": f"{here}:{name}", "args": list(args), "kwargs": kwargs}

    assert references(Patchy) == made("Patchy")
    assert references(functools.partial(Patchy, 4, bad=[1, 2])) == made("Patchy", 4, bad=[1, 2])
    assert references(functools.partial(Maker.of, 4)) == made("Maker.of", 4)
    assert references(but) == made("but")
    only_its_type = {
        "Patchy": [Patchy(), functools.partial(Patchy, bad=(1, 2)), functools.partial(Patchy, bad=list(range(5000)))],
        "Maker": [Maker()],
        "Maker.make": [Maker().make, functools.partial(Maker().make, 3)],
    }
    for name, datasets in only_its_type.items():
        for dataset in datasets:
            assert references(dataset) == {"type": f"{here}:{name}"}
    assert references(lambda: Patchy())["type"].endswith("<lambda>")
    assert references(np.arange(3)) == {"type": "numpy:ndarray"}
    assert references(functools.partial(Patchy, bad={1: 2})) == {"type": f"{here}:Patchy"}


# Arguments


@pytest.mark.parametrize("limit", [-1, -0.1, 1.5, float("nan"), True, "3", [3]])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(
        ValueError, match=r"max_errors=.*write a number of samples, or a share of them from 0\.0 to 1\.0"
    ):
        Loader(Rows(), on_error="skip", max_errors=limit)


def test_arguments_that_would_be_in_vain_are_refused():
    with pytest.raises(ValueError, match='max_errors=3 needs on_error="skip" or "quarantine"'):
        Loader(Rows(), max_errors=3)
    for on_error in ("raise", "skip"):
        with pytest.raises(ValueError, match=r"quarantine='q\.jsonl' needs on_error=\"quarantine\""):
            Loader(Rows(), on_error=on_error, quarantine="q.jsonl")
    with pytest.raises(TypeError):
        Loader(Rows(), on_error="quarantine", quarantine=3)


# Samples that kill their worker, or make it hang


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("batch_size", [1, None, 8])
@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_a_deadly_sample_is_left_out_and_no_other(start, batch_size, on_error, tmp_path):
    file = tmp_path / "q.jsonl" if on_error == "quarantine" else None
    workers = Processes(2, start=start)
    with Loader(Fatal(deadly=[13]), batch_size, workers=workers, on_error=on_error, quarantine=file) as loader:
        assert taken(loader) == but(13)
        assert loader.stats().skipped == 1
    if file:
        (record,) = lines(file)
        assert (record["index"], record["epoch"]) == (13, 0)
        assert record["error"].startswith("WorkerDied: it killed its worker by exit code 3")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("batch_size", [1, None, 8])
@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_a_sample_that_hangs_is_left_out_and_no_other(start, batch_size, on_error, tmp_path):
    file = tmp_path / "q.jsonl" if on_error == "quarantine" else None
    settings = {"workers": Processes(2, start=start), "timeout": 0.5, "max_deaths": 1}
    with Loader(Fatal(endless=[13]), batch_size, on_error=on_error, quarantine=file, **settings) as loader:
        assert taken(loader) == but(13)
        assert loader.stats().skipped == 1
    if file:
        (record,) = lines(file)
        assert (record["index"], record["epoch"]) == (13, 0)
        assert record["error"].startswith("WorkerDied: it killed its worker by a timeout: it took more than 0.5 s")
        assert "in __getitem__" in record["traceback"]


def test_a_sample_that_hangs_in_a_thread_is_left_out():
    release = threading.Event()

    class Waiting(Rows):
        def __getitem__(self, index):
            if index == 13:
                release.wait()
            return self.data[index]

    with Loader(Waiting(40), 8, workers=Threads(2), timeout=0.5, max_deaths=1, on_error="skip") as loader:
        assert taken(loader) == but(13)
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("stoker-worker"):
            thread.join()


COMPANY = {
    "two in one batch": {"deadly": [9, 13]},
    "two neighbours": {"deadly": [12, 13]},
    "the first and the last of a batch": {"deadly": [8, 15]},
    "a whole batch": {"deadly": range(8, 16)},
    "one in each of two batches": {"deadly": [5, 21]},
    "the very last": {"deadly": [39]},
    "with one that raises": {"deadly": [13], "bad": [9, 14]},
    "with one that hangs": {"deadly": [13], "endless": [10]},
}


@pytest.mark.parametrize("company", COMPANY)
@pytest.mark.parametrize("dataset", [Fatal, FatalTogether])
def test_deadly_samples_in_company(company, dataset, tmp_path):
    file = tmp_path / "q.jsonl"
    faults = COMPANY[company]
    left_out = sorted(index for indices in faults.values() for index in indices)
    settings = {"on_error": "quarantine", "quarantine": file, "max_deaths": 1, "timeout": 1.0}
    with Loader(dataset(**faults), 8, workers=Processes(2), **settings) as loader:
        assert taken(loader) == but(*left_out)
        assert loader.stats().skipped == len(left_out)
    assert sorted(record["index"] for record in lines(file)) == left_out
    raised = [record["index"] for record in lines(file) if not record["error"].startswith("WorkerDied")]
    assert raised == list(faults.get("bad", []))


@pytest.mark.parametrize("in_order", [True, False])
def test_a_deadly_sample_in_the_midst_of_a_long_run_of_small_batches(in_order):
    """Batches that are quick to make go to a worker several at a time."""
    dataset = Fatal(4000, deadly=[3001, 3500])
    with Loader(dataset, 4, workers=Processes(2), on_error="skip", in_order=in_order) as loader:
        found = taken(loader)
    assert (found if in_order else sorted(found)) == but(3001, 3500, n=4000)


def test_deadly_samples_are_left_out_of_each_epoch_and_of_shuffled_ones(tmp_path):
    file = tmp_path / "q.jsonl"
    with Loader(Rows(40), 8, shuffle=True) as oracle:
        expected = [[index for index in taken(oracle) if index not in (13, 27)] for _ in range(2)]
    settings = {"on_error": "quarantine", "quarantine": file, "max_deaths": 1}
    with Loader(Fatal(deadly=[13, 27]), 8, shuffle=True, workers=Processes(2), **settings) as loader:
        assert [taken(loader) for _ in range(2)] == expected
    assert Counter((r["index"], r["epoch"]) for r in lines(file)) == Counter((i, e) for i in (13, 27) for e in (0, 1))


def test_deadly_samples_count_for_the_limit():
    with Loader(Fatal(deadly=[9, 13], bad=[3]), 8, workers=Processes(2), on_error="skip", max_errors=2) as loader:
        with pytest.raises(TooManyErrors, match=r"3 of 40 samples.*2 may.*WorkerDied: it killed its worker") as caught:
            list(loader)
    assert "3 of 40" in str(caught.value)


GUILTY = {
    "when all are there": lambda found: len(found) == 8 and 8 in found,
    "two together": lambda found: {9, 13} <= found,
}


@pytest.mark.parametrize("guilty", GUILTY)
def test_a_batch_that_kills_only_as_a_whole_is_left_out_as_a_whole(guilty, tmp_path):
    kills = GUILTY[guilty]

    def collate(samples):
        if kills({int(sample[0]) for sample in samples}):
            os._exit(5)
        return np.stack(samples)

    file = tmp_path / "q.jsonl"
    settings = {"on_error": "quarantine", "quarantine": file, "collate": collate, "max_deaths": 2}
    with Loader(Rows(40), 8, workers=Processes(2), **settings) as loader:
        assert taken(loader) == but(*range(8, 16))
        assert loader.stats().skipped == 8
    assert [record["index"] for record in lines(file)] == list(range(8, 16))
    assert all(record["error"].endswith(", together with the others of its batch") for record in lines(file))
