"""``stoker tune``: measures what it says, names the line to write, and says what is wrong with a dataset."""

from __future__ import annotations

import json
import re
import sys

import pytest

import stoker
from stoker.cli import sweep
from stoker.cli.sweep import Outcome, Setting, Sweep
from tests.cli.running import run

MODULE = """
import threading
import time
import numpy as np

class Waiting:
    def __init__(self, n=64):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, index):
        time.sleep(0.001)
        return np.zeros(10, np.float32)

def make():
    return Waiting(32)

class Failing(Waiting):
    def __getitem__(self, index):
        raise KeyError(f"no sample {index}")

class InOneThread(Waiting):
    def __getitem__(self, index):
        assert threading.current_thread() is threading.main_thread(), "not in a thread"
        return np.zeros(10, np.float32)

waiting, empty, number = Waiting(), [], 5
"""
QUICK = "--seconds", "0.02", "--most", "2", "--batch-size", "4"


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "tuned.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sweep, "_AUTO_LEAD_IN_S", 0.05)
    monkeypatch.setattr(sweep, "_LEAD_IN_S", 0.01)
    monkeypatch.setattr(sweep, "_ROUNDS", 1)
    monkeypatch.setattr(sweep, "_FINALISTS", 1)
    yield
    sys.modules.pop("tuned", None)


@pytest.mark.parametrize(
    "name",
    [
        "tuned.py:waiting",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in ("tuned:waiting", "tuned:Waiting", "tuned:make")
        ),
    ],
)
def test_it_prints_a_table_with_bars_and_the_line_to_write(name):
    done = run("tune", name, *QUICK)
    assert done.returncode == 0, done.stderr
    for workers in ("Inline()", "Threads(1)", "Threads(2)", "Processes(1)", "Processes(2)", "Auto()"):
        assert re.search(rf"^ {re.escape(workers)} +\d +[\d,]+ +\d+% +█+", done.stdout, re.MULTILINE), workers
    assert re.search(r"^Write: stoker.Loader\(dataset, 4.*\)$", done.stdout, re.MULTILINE)
    measured = done.stderr.splitlines()  # where no terminal shows how it goes on
    assert measured[0] == "measuring Inline(), prefetch=2"
    assert measured[-1] == "measuring Auto(), prefetch=2"


def test_the_line_is_code_that_works():
    done = run("tune", "tuned:waiting", *QUICK, "--json")
    line = json.loads(done.stdout)["line"]
    from tuned import waiting

    with eval(line, {"stoker": stoker, "dataset": waiting}) as loader:
        assert len(list(loader)) == 16


def test_the_figures_as_json():
    figures = json.loads(run("tune", "tuned:waiting", *QUICK, "--step-ms", "1", "--json").stdout)
    assert (figures["dataset"], figures["batch_size"], figures["step_ms"]) == ("tuned:waiting", 4, 1.0)
    assert figures["chosen"] in figures["settings"]
    assert all(one["samples_per_second"] > 0 and not one["error"] for one in figures["settings"])


def test_workers_that_a_dataset_does_not_work_with_are_left_out():
    done = run("tune", "tuned:InOneThread", *QUICK)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Threads\(1\) +2 +failed", done.stdout)
    assert "Threads(1) failed: " in done.stdout
    assert "workers=stoker.Threads" not in done.stdout


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tuned:nothing", "tuned has no nothing: pass MODULE:NAME, or PATH.py:NAME"),
        ("no_such_module:x", "there is no module no_such_module"),
        ("tuned", "'tuned' is no name of a dataset"),
        ("nowhere.py:x", "there is no file nowhere.py"),
        ("tuned:empty", "tuned:empty has no samples, so there is nothing to measure"),
        ("tuned:Failing", "KeyError: 'no sample 0'"),
        ("tuned:number", "dataset: int has no __getitem__. Pass an object with"),
    ],
)
def test_what_is_wrong_with_the_dataset_is_said(name, told):
    done = run("tune", name, *QUICK)
    assert done.returncode == 2
    assert done.stdout == ""
    said = done.stderr.removeprefix("measuring Inline(), prefetch=2\n")
    assert said.startswith("stoker tune: error: ")
    assert told in done.stderr
    assert "src/stoker" not in done.stderr  # frames are those of the user's code


@pytest.mark.parametrize("wrong", [("--batch-size", "0"), ("--seconds", "0"), ("--step-ms", "-1"), ("--most", "x")])
def test_wrong_arguments_are_refused(wrong):
    done = run("tune", "tuned:waiting", *wrong)
    assert done.returncode == 2
    assert wrong[0] in done.stderr


def test_a_plot(tmp_path):
    pytest.importorskip("matplotlib")
    done = run("tune", "tuned:waiting", *QUICK, "--plot", tmp_path / "sweep.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_a_plot_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr("stoker.cli.tune.find_spec", lambda _: None)
    done = run("tune", "tuned:waiting", "--plot", "sweep.png")
    assert done.returncode == 2
    assert "pip install matplotlib" in done.stderr


def chosen_of(**rates):
    ours = Sweep(None, batch_size=1, step=0, seconds=1, most=8, shuffle=False, on_step=print)
    for name, rate in rates.items():
        kind, count, prefetch = name.split("_")
        setting = Setting(kind, int(count), int(prefetch))
        ours.outcomes[setting] = Outcome(setting, [rate])
    return ours.chosen.setting.line(32)


def test_of_those_that_are_as_good_the_one_that_takes_least_is_the_one_to_write():
    assert chosen_of(Processes_8_2=100.0, Processes_4_2=97.0, Threads_4_2=99.0, Processes_2_2=60.0) == (
        "stoker.Loader(dataset, 32, workers=stoker.Processes(4))"
    )
    assert chosen_of(Processes_8_4=100.0, Threads_4_4=98.0, Threads_4_1=96.0, Inline_0_2=50.0) == (
        "stoker.Loader(dataset, 32, workers=stoker.Threads(4), prefetch=1)"
    )
    assert chosen_of(Processes_8_2=100.0, Inline_0_2=96.0) == "stoker.Loader(dataset, 32)"
    assert chosen_of(Auto_0_2=200.0, Inline_0_2=96.0) == "stoker.Loader(dataset, 32)"
