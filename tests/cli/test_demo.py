"""`stoker demo` trains, compares and explains, also where there is no terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install stoker[demo]")


def stoker(*arguments: str, prefix: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    script = f"import sys; {prefix}from stoker.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=cwd
    )


def test_the_demo_ends_with_a_comparison_a_diagnosis_and_a_report(tmp_path):
    done = stoker("demo", "--epochs", "1", "--samples", "256", "--batch-size", "32", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "held-out accuracy" in done.stdout
    assert "plain loop" in done.stdout
    assert "speed-up" in done.stdout
    diagnosis = done.stdout.partition("Diagnosis: ")[2]
    assert diagnosis.strip()
    report = tmp_path / "stoker-report.html"
    assert str(report) in done.stdout
    assert "Loader(Digits" in report.read_text()


def test_json_has_the_figures_and_nothing_else_is_printed(tmp_path):
    done = stoker("demo", "--epochs", "2", "--samples", "64", "--json", "--report", str(tmp_path / "report.html"))
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [epoch["samples"] for epoch in found["epochs"]] == [64, 64]
    assert found["stats"]["batches"] == 2
    assert found["samples_per_second"] > 0


def test_without_a_terminal_there_are_no_control_codes(tmp_path):
    done = stoker("demo", "--epochs", "1", "--samples", "64", "--report", str(tmp_path / "report.html"))
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert done.stderr == ""


def test_without_scikit_learn_it_says_what_to_install():
    done = stoker("demo", prefix="sys.modules['sklearn'] = None; ")
    assert done.returncode == 1
    assert 'pip install "stoker[demo]"' in done.stderr


@pytest.mark.parametrize("arguments", [["demo", "--epochs", "0"], ["demo", "--workers", "-1"], ["stoke"], []])
def test_bad_arguments_are_refused_with_the_usage(arguments):
    done = stoker(*arguments)
    assert done.returncode == 2
    assert "usage: stoker" in done.stderr


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert stoker("--version").stdout == f"stoker {version('stoker')}\n"
