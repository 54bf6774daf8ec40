"""The ``stoker`` command: one file a subcommand, each with a ``register`` that adds its arguments.

Uses the public API, as any other program would; ``replay`` also the parts that make a sample in a worker, ``cache``
and ``split`` those that know their files.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from stoker.cli import cache, demo, replay, split

__all__ = ["main"]

_SUBCOMMANDS = (demo, replay, cache, split)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="stoker", description="Keeps accelerators fed.")
    parser.add_argument("--version", action="version", version=f"stoker {version('stoker')}")
    subparsers = parser.add_subparsers(title="commands", metavar="command", required=True)
    for subcommand in _SUBCOMMANDS:
        subcommand.register(subparsers)
    arguments = parser.parse_args(argv)
    code: int = arguments.run(arguments)
    return code
