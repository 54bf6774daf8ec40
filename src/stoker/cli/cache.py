"""``stoker cache``: lists what a cache on disk holds, checks it and removes it."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.table import Table

from stoker import CacheError
from stoker.cli.terminal import INTERRUPTED, add_json, bar_of_bytes, examples, failed, print_json, printable
from stoker.stores.cache_inventory import Findings, GenerationInfo, about, list_generations, remove, verify
from stoker.systems import IS_LINUX, not_here

_WIDE = 200  # columns of a file or pipe, where no line is to be broken
_LISTED = 20  # damaged samples that are named
_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"))


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "cache",
        help="list, check or remove a cache on disk",
        description="Exit code 2: it is no cache, or cannot be read or removed.",
        **examples("stoker cache ls path/to/cache", "stoker cache verify path/to/cache --json"),
    )
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    _add(commands, "ls", _list, "list the dataset of the cache, its generations, and how full and large they are")
    _add(commands, "verify", _verify, "check every sample; the exit code is 1 if one is damaged")
    rm = _add(commands, "rm", _remove, "remove the cache")
    rm.add_argument("--force", action="store_true", help="remove it even if it is in use; readers continue without it")


def _add(commands: Any, name: str, do: Any, summary: str) -> argparse.ArgumentParser:
    example = examples(f"stoker cache {name} path/to/cache")
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary, **example)
    parser.add_argument("path", metavar="PATH", help="the folder that was passed to stoker.Cache")
    add_json(parser)
    parser.set_defaults(run=run, do=do)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """One of the commands; returns the exit code."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDE
    try:
        if not IS_LINUX:
            raise not_here("stoker cache", "there are caches on Linux only")
        code: int = arguments.do(console, arguments)
        return code
    except (CacheError, OSError, NotImplementedError) as error:
        return failed("cache", error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _list(console: Console, arguments: argparse.Namespace) -> int:
    whose, generations = about(arguments.path), list_generations(arguments.path)
    if arguments.json:
        own = {"dataset": whose.dataset, "version": whose.version, "codec": whose.codec}
        print_json(own | {"generations": [{"name": one.name} | dataclasses.asdict(one) for one in generations]})
        return 0
    for name, value in (("dataset", whose.dataset), ("version", whose.version or "none"), ("codec", whose.codec)):
        console.print(f"{name:8} {printable(value)}")
    if not generations:
        console.print("no generation yet")
        return 0
    table = Table("generation", box=HEAVY_HEAD if console.is_terminal else None)
    for column in ("samples kept", "of", "bytes", "last written"):
        table.add_column(column, justify="right")
    table.add_column("in use")
    for one in generations:
        table.add_row(printable(one.name), *_figures(one), "yes" if one.in_use else "no")
    console.print(table)
    return 0


def _figures(one: GenerationInfo) -> tuple[str, str, str, str]:
    age = f"{_age(time.time() - one.written)} ago"
    if one.count is None or one.kept is None:
        return "header damaged", "?", f"{one.nbytes:,}", age
    return f"{one.kept:,}", f"{one.count:,}", f"{one.nbytes:,}", age


def _verify(console: Console, arguments: argparse.Namespace) -> int:
    about(arguments.path)
    generations = list_generations(arguments.path)
    findings: list[Findings] = []
    with bar_of_bytes(console) as progress:
        task = progress.add_task("", total=sum(one.nbytes for one in generations))
        done = 0
        for one in generations:
            progress.update(task, description=printable(one.name), completed=done)
            findings.append(verify(one.path, lambda nbytes: progress.advance(task, nbytes)))
            done += one.nbytes
    code = int(any(found.is_damaged for found in findings))
    if arguments.json:
        named = zip(generations, findings, strict=True)
        print_json({"generations": [{"name": one.name} | dataclasses.asdict(found) for one, found in named]})
        return code
    for one, found in zip(generations, findings, strict=True):
        console.print(f"{printable(one.name)}: {_told(found)}", style="red" if found.is_damaged else None)
    if not generations:
        console.print("no generation yet")
    return code


def _told(found: Findings) -> str:
    if found.header_damaged:
        return "its header is damaged. The next Loader that uses it writes it anew, and checks every sample"
    told = f"{found.sound:,} sound, {len(found.damaged):,} damaged, {found.missing:,} missing"
    return f"{told}. Damaged: {_listed(found.damaged)}. They will be made again" if found.damaged else told


def _listed(indices: Sequence[int]) -> str:
    rest = len(indices) - _LISTED
    return ", ".join(map(str, indices[:_LISTED])) + (f" and {rest:,} more" if rest > 0 else "")


def _remove(console: Console, arguments: argparse.Namespace) -> int:
    freed, others = remove(arguments.path, force=arguments.force)
    if arguments.json:
        print_json({"removed": arguments.path, "bytes": freed, "left": list(others)})
        return 0
    console.print(f"removed {printable(arguments.path)}: {freed:,} bytes freed")
    if others:
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        console.print(f"left there, as not of the cache: {printable(shown)}")
    return 0


def _age(seconds: float) -> str:
    for unit, name in _AGES:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
