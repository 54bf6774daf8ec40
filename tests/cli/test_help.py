"""The help of each command, and what a shell can complete."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys

import pytest

from stoker.cli import parser_of_all
from tests.cli.running import run


def commands(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    """All parsers, by what is typed."""
    found = {name: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own, below in action.choices.items():
                found |= commands(below, f"{name} {own}".strip())
    return found


ALL = commands(parser_of_all())


@pytest.mark.parametrize("name", ALL)
def test_each_command_has_examples_that_its_parser_accepts(name):
    done = run(*name.split(), "--help")
    assert done.returncode == 0
    examples = re.findall(r"^  \$ stoker (.+)$", done.stdout, flags=re.MULTILINE)
    assert examples
    for example in examples:
        assert example.startswith(name)
        parser_of_all().parse_args(shlex.split(example))


def test_the_examples_of_all_name_each_command():
    shown = run("--help").stdout
    assert all(f"$ stoker {name.split()[0]}" in shown for name in ALL if name)


@pytest.mark.parametrize("name", [name for name, parser in ALL.items() if parser.get_default("run")])
def test_each_command_has_json(name):
    assert "--json" in run(*name.split(), "--help").stdout


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("stoker doc", ["doctor"]), ("stoker doctor --j", ["--json"]), ("stoker cache ", ["ls", "rm", "verify"])],
)
def test_a_shell_can_complete_it(typed, expected, tmp_path):
    """As the function that ``register-python-argcomplete stoker`` defines asks for it."""
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": typed, "COMP_POINT": str(len(typed)), "_ARGCOMPLETE_IFS": "\n"}
    answers = {"_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "answers"), "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    script = "from stoker.cli import main; main()"
    program = [sys.executable, "-c", script]
    subprocess.run(program, env={**os.environ, **asked, **answers}, timeout=60, check=True)
    found = (tmp_path / "answers").read_text().splitlines()
    assert set(expected) <= {word.strip() for word in found}
