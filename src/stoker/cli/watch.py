"""``stoker watch``: the live page of all loaders of this machine that have ``watch=True``."""

from __future__ import annotations

import argparse
import json
import sys
from http.client import HTTPException
from typing import Any

from rich.console import Console

from stoker.cli.terminal import examples
from stoker.interrupts import Bell
from stoker.observe.page import Watch


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "watch",
        help="watch the loaders of this machine in a browser",
        description="Serves a page that shows all loaders and streams of this user and machine that have watch=True, "
        "live, until Ctrl-C.",
        **examples("stoker watch --port 8321", "stoker watch --json"),
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen at; the default is this machine's own"
    )
    parser.add_argument("--port", type=int, default=0, help="the port to listen at; 0: any that is free")
    parser.add_argument("--json", action="store_true", help="print what there is to see, once, as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code."""
    try:
        return _print_once() if arguments.json else _serve(Watch(arguments.host, arguments.port))
    except (OSError, ValueError) as error:
        print(f"stoker watch: error: {error}", file=sys.stderr)
        return 2


def _print_once() -> int:
    from stoker.observe.page.gathering import asked
    from stoker.observe.page.registry import entries

    found: list[dict[str, Any]] = []
    for entry in entries():
        try:
            found += asked(entry)
        except (OSError, HTTPException, ValueError) as error:
            print(f"stoker watch: process {entry.pid} does not answer: {error}", file=sys.stderr)
    print(json.dumps({"loaders": found}))
    return 0


def _serve(watch: Watch) -> int:
    from stoker.observe.page.gathering import Gathering
    from stoker.observe.page.server import PageServer

    console = Console(highlight=False, markup=False, soft_wrap=True)
    server = PageServer(watch, Gathering(list), is_published=False)
    try:
        console.print(f"Watch the loaders of this machine at {server.url}")
        console.print("Ctrl-C ends it.")
        Bell().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
    return 0
