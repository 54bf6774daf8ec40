"""``Processes(environments=...)``: variables that a worker has for itself, from before its first import."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import signal
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest

from stoker import Loader, Processes
from tests.workers.surroundings import Looking

NAME = "STOKER_TEST_VARIABLE"


def spawned(*values: str) -> Processes:
    return Processes(len(values), start="spawn", environments=[{NAME: value} for value in values])


def seen(loader: Loader) -> dict[int, tuple[str, str]]:
    """pid -> the variable at import, and later, of each worker that has made something."""
    found = {}
    for pids, at_import, now in loader:
        assert len(set(at_import)) == len(set(now)) == 1
        found[int(pids[0])] = at_import[0], now[0]
    return found


def seen_by(count: int, loader: Loader, beside: Collection[int] = ()) -> dict[int, tuple[str, str]]:
    """Of so many workers, beside those of whom it is known: one that starts late makes nothing in the first epochs."""
    found: dict[int, tuple[str, str]] = {}
    while len(found.keys() - beside) < count:
        found |= seen(loader)
    return {pid: variable for pid, variable in found.items() if pid not in beside}


@pytest.mark.parametrize("dataset", [Looking(NAME), partial(Looking, NAME)], ids=["object", "factory"])
def test_each_worker_has_its_own_before_the_dataset_is_imported(dataset, monkeypatch):
    monkeypatch.setenv(NAME, "the consumer's")
    with Loader(dataset, 2, workers=spawned("first", "second", "third")) as loader:
        found = seen_by(3, loader)
    assert sorted(found.values()) == [("first", "first"), ("second", "second"), ("third", "third")]
    assert os.environ[NAME] == "the consumer's"


def test_a_worker_that_takes_the_place_of_a_dead_one_has_its_variables():
    with Loader(Looking(NAME), 2, workers=spawned("first", "second")) as loader:
        before = seen_by(2, loader)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        after = seen_by(2, loader, beside=before)
    assert sorted(after.values()) == [("first", "first"), ("second", "second")]


def test_other_variables_are_those_of_the_consumer(monkeypatch):
    monkeypatch.setenv("STOKER_TEST_OTHER", "of all")
    with Loader(Looking("STOKER_TEST_OTHER"), 2, workers=spawned("first")) as loader:
        assert list(seen(loader).values()) == [("of all", "of all")]
    with Loader(Looking(NAME), 2, workers=Processes(1, start="spawn")) as loader:
        assert list(seen(loader).values()) == [("unset", "unset")]


def test_they_win_over_what_stoker_sets_for_all_workers():
    workers = Processes(1, start="spawn", environments=[{"OMP_NUM_THREADS": "5"}])
    with Loader(Looking("OMP_NUM_THREADS"), 2, workers=workers) as loader:
        assert list(seen(loader).values()) == [("5", "5")]


def test_the_values_are_in_no_command_line():
    with Loader(Looking(NAME), 2, workers=spawned("a secret")) as loader:
        (pid,) = seen(loader)
        assert b"a secret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert "secret" not in repr(spawned("a secret"))


def test_it_is_a_value_like_the_other_options():
    given = [{NAME: "first"}, {}]
    workers = Processes(2, start="spawn", environments=given)
    given[1][NAME] = "changed later"
    same = Processes(2, start="spawn", environments=({NAME: "first"}, {}))
    assert workers == same != Processes(2, start="spawn")
    assert hash(workers) == hash(same)
    assert pickle.loads(pickle.dumps(workers)) == copy.deepcopy(workers) == dataclasses.replace(workers) == workers


@pytest.mark.parametrize("start", ["nursery", "fork"])
def test_only_a_fresh_interpreter_has_nothing_imported(start):
    with pytest.raises(ValueError, match=f"start='{start}', environments=.*Pass start=\"spawn\""):
        Processes(1, start=start, environments=[{NAME: "first"}])


@pytest.mark.parametrize(
    ("environments", "kind", "words"),
    [
        ([], ValueError, r"environments=\[0 in all\]\): pass one dict for each worker"),
        ([{}], ValueError, r"Processes\(2, environments=\[1 in all\]\)"),
        ([{}, {}, {}], ValueError, "3 in all"),
        ({NAME: "first"}, TypeError, "pass a list of dicts"),
        ("ab", TypeError, "pass a list of dicts"),
        (iter([{}, {}]), TypeError, "pass a list of dicts"),
        ([{}, None], TypeError, "None ...]\\): pass a dict of variables"),
        ([{}, ["A=1"]], TypeError, "pass a dict of variables"),
        ([{}, {"A": 1}], TypeError, "{'A': 1} ...]\\): pass both as strings"),
        ([{}, {1: "A"}], TypeError, "pass both as strings"),
        ([{}, {"A=B": "1"}], ValueError, "no variable can be that"),
        ([{}, {"": "1"}], ValueError, "no variable can be that"),
        ([{}, {"A": "1\0"}], ValueError, "no variable can be that"),
    ],
)
def test_wrong_environments_are_an_error_that_says_what_to_write(environments, kind, words):
    with pytest.raises(kind, match=words):
        Processes(2, start="spawn", environments=environments)
