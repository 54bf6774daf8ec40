"""What several commands show in the terminal, and the options that they have in common."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

INTERRUPTED = 130  # the exit code that shells have for Ctrl-C
FAILED = 2  # the exit code of argparse for what cannot be done as it was asked for


def examples(*lines: str) -> dict[str, Any]:
    """Arguments of a parser whose help ends with these commands."""
    listed = "\n".join(f"  $ {line}" for line in lines)
    return {"epilog": f"example:\n{listed}", "formatter_class": argparse.RawDescriptionHelpFormatter}


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")


def positive(text: str) -> int:
    """A whole number from 1 on, as an argument."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def output(*, quiet: bool = False) -> Console:
    """Standard output. ``quiet``: nothing is printed, but what ``print_json`` prints."""
    return Console(highlight=False, markup=False, soft_wrap=True, quiet=quiet)


def print_json(value: dict[str, Any]) -> None:
    """All that a command has to say."""
    print(json.dumps(value, indent=2))


def failed(command: str, error: BaseException | str, code: int = FAILED) -> int:
    """Says on standard error what went wrong; returns the exit code."""
    print(f"stoker {command}: error: {printable(str(error))}", file=sys.stderr)
    return code


class Bar(Progress):
    """A bar that is gone at the end, and not there at all where there is no terminal."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)

    def stop(self) -> None:
        if not self.disable:  # else rich writes an empty line, in most of its versions
            super().stop()


def bar_of_bytes(console: Console) -> Bar:
    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    return Bar(console, *columns)


def printable(text: str) -> str:
    """What a file is called, or tells, may be anything; a terminal is not to obey it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
