"""Which dataset `stoker replay` makes the samples with: the recorded one, or one that is given by name."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.replaying import replay, summary, train

RECORD = {"index": 3, "epoch": 0, "error": "E: e", "traceback": "", "seed": 1, "dataset": {"type": "a:B"}}


@pytest.mark.parametrize(
    "name", ["shapes:shapes", "shapes:some", "shapes:Holder.shapes", "shapes.py:shapes", "train.py:dataset"]
)
def test_a_dataset_that_was_an_object_is_given_by_name(folder, name):
    train(folder, "shapes.shapes")
    assert summary(replay(folder, "--dataset", name)) == "2 samples: 2 fail as before"


def test_a_file_may_lie_elsewhere_and_be_named_like_a_module_and_import_its_neighbours(folder):
    train(folder, "shapes.shapes")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "shapes.py").rename(elsewhere / "shapes.py")
    (elsewhere / "json.py").write_text("from shapes import shapes")
    done = replay(folder, "--dataset", "elsewhere/json.py:shapes")
    assert summary(done) == "2 samples: 2 fail as before"


def test_an_objects_type_is_named_and_what_to_write(folder):
    train(folder, "shapes.shapes")
    done = replay(folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "known as shapes:Shapes only" in done.stderr
    assert "  stoker replay quarantine.jsonl --dataset MODULE:NAME\n" in done.stderr


def test_a_scripts_own_dataset_needs_a_word_as_importing_it_runs_it(folder):
    train(folder, "functools.partial(Own, 20, bad=[3])")
    done = replay(folder)
    assert done.returncode == 2
    assert "the dataset is Own, of a script that was run. To import a script is to run it" in done.stderr
    assert "  stoker replay quarantine.jsonl --dataset SCRIPT.py:NAME\n" in done.stderr
    assert summary(replay(folder, "--dataset", "train.py:dataset")) == "1 sample: 1 fails as before"


def test_a_given_dataset_replaces_the_one_of_the_file(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3, 7])")
    assert summary(replay(folder, "--dataset", "shapes:some")) == "2 samples: 1 fails as before, 1 works now"


def test_several_datasets_in_a_file_are_told_apart(folder):
    """The same index of two datasets is two samples."""
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3])")
    train(folder, "functools.partial(shapes.Shapes, 30, bad=[3, 4])")
    assert summary(replay(folder)) == "3 samples: 3 fail as before"
    done = replay(folder, "--dataset", "shapes:some")
    assert done.returncode == 2
    assert "2 datasets (shapes:Shapes, shapes:Shapes)" in done.stderr
    train(folder, "shapes.shapes")
    assert summary(replay(folder, "--dataset", "shapes:shapes")) == "5 samples: 5 fail as before"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shapes", "'shapes' is no name of a dataset: pass MODULE:NAME, or PATH.py:NAME"),
        ("shapes:", "is no name"),
        ("rhombs:all", "there is no module rhombs"),
        ("shapes.deep:all", "there is no module shapes.deep"),
        ("rhombs.py:all", "there is no file rhombs.py"),
        ("shapes:rhombs", "shapes has no rhombs"),
        ("shapes:number", r"(?s)cannot be made:.*has no __getitem__"),
        ("shapes:time.sleep", r"(?s)cannot be made:.*TypeError"),
        ("broken.py:all", r"(?s)importing broken.py failed:\nTraceback.*\n  File .*broken.py.*ZeroDivisionError"),
        ("broken:all", r"(?s)importing broken failed:\nTraceback .*\n  File .*broken.py.*ZeroDivisionError"),
        ("quitting:all", r"(?s)importing quitting failed:.*SystemExit: bye"),
        ("lacking:all", r"(?s)importing lacking failed:.*No module named 'rhombs'"),
    ],
)
def test_a_dataset_that_cannot_be_had_is_a_usage_error(folder, name, words):
    (folder / "quarantine.jsonl").write_text(json.dumps(RECORD))
    (folder / "broken.py").write_text("1 / 0")
    (folder / "quitting.py").write_text("raise SystemExit('bye')")
    (folder / "lacking.py").write_text("import rhombs")
    done = replay(folder, "--dataset", name)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.search(words, done.stderr), done.stderr


def test_a_recorded_factory_that_is_gone_is_a_usage_error(folder):
    train(folder, "functools.partial(shapes.Shapes, 20, bad=[3])")
    module = folder / "shapes.py"
    module.write_text(module.read_text().replace("Shapes", "Forms"))
    done = replay(folder)
    assert done.returncode == 2
    assert "shapes has no Shapes: pass --dataset" in done.stderr
    module.unlink()
    done = replay(folder)
    assert done.returncode == 2
    assert "there is no module shapes to get the dataset shapes:Shapes from" in done.stderr
