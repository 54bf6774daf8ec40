"""``stoker doctor``: says what on this machine makes loaders slow or makes them fail, and what mends it."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.text import Text

from stoker.cli.terminal import add_json, examples, output, positive, print_json, printable
from stoker.doctor import Finding, Host, Level, examine

_LOOKS = {
    Level.FINE: ("ok", "green"),
    Level.NOTE: ("note", "cyan"),
    Level.WARNING: ("warning", "yellow"),
    Level.ERROR: ("error", "red"),
}
_INDENT = " " * 9


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="find what on this machine makes loaders slow",
        description="Exit code 1: something is to be changed; 0: nothing is.",
        **examples("stoker doctor", "stoker doctor --workers 8 --json"),
    )
    parser.add_argument("--workers", type=positive, help="the number of workers of your loader; default: one a core")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Looks at everything, and returns the exit code."""
    findings = examine(Host(workers=arguments.workers))
    if arguments.json:
        print_json({"findings": [finding.to_dict() for finding in findings]})
    else:
        console = output()
        for finding in findings:
            _print(console, finding)
        console.print(_summary(findings))
    return int(any(finding.level >= Level.WARNING for finding in findings))


def _print(console: Console, finding: Finding) -> None:
    name, style = _LOOKS[finding.level]
    console.print(Text(f"{name:7}  ", style), Text(finding.check, "bold"), f": {printable(finding.what)}", sep="")
    if finding.why:
        console.print(f"{_INDENT}{finding.why}")
    if finding.remedy:
        console.print(f"{_INDENT}$ {finding.remedy}" if _is_command(finding.remedy) else f"{_INDENT}{finding.remedy}")


def _is_command(remedy: str) -> bool:
    return remedy.split()[0] in {"echo", "export", "pip", "sudo", "ulimit", "unset"}


def _summary(findings: list[Finding]) -> str:
    count = sum(finding.level >= Level.WARNING for finding in findings)
    return f"{count} thing{'s' * (count != 1)} to change" if count else "Nothing to change"
