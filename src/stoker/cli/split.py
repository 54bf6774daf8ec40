"""``stoker split``: a big file is cut into chunk files."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

import stoker
from stoker.cli.terminal import (
    INTERRUPTED,
    add_json,
    bar_of_bytes,
    examples,
    failed,
    output,
    print_json,
    printable,
)
from stoker.splitting import manifest

_GO_ON = "the chunks that are finished are kept, and the same command goes on behind them"


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "split",
        help="cut a big file into chunk files",
        description="Cuts a file between its records. Stopped at any moment, the same command goes on. "
        "Exit code 1: the file is damaged; 2: it cannot be split like this.",
        **examples("stoker split big.jsonl chunks --size 64MB", "stoker split big.npy chunks --count 10000 --json"),
    )
    parser.add_argument("source", metavar="SOURCE", help="a path or URL: .txt .jsonl .csv .npy .parquet .tar ...")
    parser.add_argument("into", metavar="INTO", help="the folder for the chunks; it is made if it does not exist")
    limit = parser.add_mutually_exclusive_group(required=True)
    limit.add_argument("--size", help="the largest size of a chunk before compression, such as 64MB or 1.5GiB")
    limit.add_argument("--count", type=int, help="the largest number of records in a chunk")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Splits, and returns the exit code."""
    try:
        _split(output(), arguments)
        return 0
    except stoker.ChunkError as error:
        return failed("split", error, 1)
    except (ValueError, ImportError, OSError) as error:
        return failed("split", error)
    except KeyboardInterrupt:
        print(f"stoker split: interrupted: {_GO_ON}", file=sys.stderr)
        return INTERRUPTED


def _split(console: Console, arguments: argparse.Namespace) -> None:
    with bar_of_bytes(console) as progress:
        task = progress.add_task(printable(Path(arguments.source).name), total=None)
        paths = stoker.split(
            arguments.source,
            arguments.into,
            size=arguments.size,
            count=arguments.count,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    state = manifest.read(Path(arguments.into))
    if state is not None:
        records, nbytes = (sum(getattr(chunk, name) for chunk in state.chunks) for name in ("records", "bytes"))
        if arguments.json:
            files = [os.fspath(path) for path in paths]
            print_json({"folder": arguments.into, "records": records, "bytes": nbytes, "chunks": files})
            return
        chunks = f"{len(state.chunks):,} chunk{'s' if len(state.chunks) != 1 else ''}"
        console.print(f"{chunks} in {printable(arguments.into)}: {records:,} records, {nbytes:,} bytes")
