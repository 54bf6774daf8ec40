# PYTHON_ARGCOMPLETE_OK
"""The ``stoker`` command: one file a subcommand, each with a ``register`` that adds its arguments.

Uses the public API, as any other program would; ``replay`` also the parts that make a sample in a worker, ``cache``
and ``split`` those that know their files, ``watch`` the server of the page.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from stoker.cli import cache, demo, doctor, replay, split, tune, watch
from stoker.cli.terminal import FAILED, INTERRUPTED, examples

__all__ = ["main"]

_SUBCOMMANDS = (demo, doctor, watch, tune, replay, cache, split)


_EXAMPLES = (
    "stoker demo --epochs 2",
    "stoker doctor",
    "stoker watch",
    "stoker tune my_data:make_dataset --batch-size 64",
    "stoker replay quarantine.jsonl --pdb",
    "stoker cache ls path/to/cache",
    "stoker split big.jsonl chunks --size 64MB",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns the process's exit code."""
    _open_what_is_closed()
    parser = parser_of_all()
    _complete(parser)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads it has seen enough, as ``head`` has
        _write_no_more()
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _write_no_more()
        print(f"stoker: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return FAILED


def _open_what_is_closed() -> None:
    """Standard streams that the command was started without: what it would write there goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends


def _write_no_more() -> None:
    """To standard output: Python would try once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser_of_all() -> argparse.ArgumentParser:
    """Of all subcommands."""
    parser = argparse.ArgumentParser(prog="stoker", description="Keeps accelerators fed.", **examples(*_EXAMPLES))
    parser.add_argument("--version", action="version", version=f"stoker {version('stoker')}")
    subparsers = parser.add_subparsers(title="commands", metavar="command", required=True)
    for subcommand in _SUBCOMMANDS:
        subcommand.register(subparsers)
    return parser


def _complete(parser: argparse.ArgumentParser) -> None:
    """If it is a shell that asks what can be typed next: answers, and ends the process."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
