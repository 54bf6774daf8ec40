"""`python -m benchmarks.simulate`: Stoker's own plan and engine on a cluster that does not exist.

Up to 1,000 nodes, 10,000 consumers and 10^12 samples. What is real in it and what is simulated, and what came of it, is
in docs/design/scale.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks.simulation import bottlenecks, costs, deaths, fleet, plots, reality
from benchmarks.simulation.report import Report

_WIDTH = 120  # of tables, where the output has none of its own


def _coverage(report: Report, full: bool) -> None:
    report.coverage += fleet.coverage()
    report.fleets += [fleet.small(), fleet.large(full=full)]


def _cost(report: Report, full: bool) -> None:
    report.costs += costs.measure()


def _limits(report: Report, full: bool) -> None:
    report.limits += bottlenecks.measure(full=full)


def _losses(report: Report, full: bool) -> None:
    report.losses += deaths.measure()


def _reality(report: Report, full: bool) -> None:
    report.reality += reality.measure()


_PARTS: dict[str, Callable[[Report, bool], None]] = {
    "coverage": _coverage,
    "cost": _cost,
    "limits": _limits,
    "losses": _losses,
    "reality": _reality,
}
_QUICK = "coverage,cost,limits,losses"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulate",
        description="Stoker's plan and engine, driven by simulated workers, nodes and networks.",
    )
    parser.add_argument(
        "--only",
        default=_QUICK,
        help=f"comma-separated, out of: {', '.join(_PARTS)} (default: {_QUICK}; reality runs real loaders for 40 s)",
    )
    parser.add_argument(
        "--full", action="store_true", help="all of 10,000 consumers, and more cases of limits: some minutes, and 1 GB"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write the plots there")
    given = parser.parse_args()
    if unknown := set(given.only.split(",")) - set(_PARTS):
        parser.error(f"--only: no such part: {', '.join(sorted(unknown))}; choose out of {', '.join(_PARTS)}")
    return given


def main() -> None:
    given = _options()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    report, errors = Report(), Console(stderr=True)
    for name, measure in _PARTS.items():
        if name in given.only.split(","):
            with errors.status(name):
                measure(report, given.full)
    if given.json:
        print(json.dumps(report.as_json(), indent=1))
    else:
        for table in report.tables():
            console.print(table)
    if given.plots:
        for path in plots.draw(report, given.plots):
            errors.print(f"wrote {path}")
    if not report.is_exact:
        sys.exit("a sample was missing, or came twice")


if __name__ == "__main__":
    main()
