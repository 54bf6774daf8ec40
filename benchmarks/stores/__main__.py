"""`python -m benchmarks.stores`: runs the bench of the stores, shows it, and writes results/stores.*.

A quick or partial run only shows what it found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.stores.kinds import KINDS
from benchmarks.stores.measure import Measurement
from benchmarks.stores.process import ChildError
from benchmarks.stores.quiet import Patience
from benchmarks.stores.report import KindReport, Report
from benchmarks.stores.store import STORES

_RESULTS = Path(__file__).parent.parent / "results"
_PACKAGES = ("numpy", "lmdb", "pyarrow", "xxhash")
_PAPER = 240
_ROUNDS = 3


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description="Stores for the sample cache.")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"of each store (default {_ROUNDS})")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds to spend on waiting for quiet (120)")
    parser.add_argument("--only", nargs="+", choices=STORES, default=list(STORES), metavar="STORE")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    return parser.parse_args()


@dataclass(frozen=True)
class Bench:
    scratch: Path
    rounds: int
    patience: Patience
    after_each: Callable[[str], None]

    def measure(self, report: KindReport) -> None:
        """All stores in turn, round by round; each round begins with another store."""
        names = list(report.rounds)
        for turn in range(self.rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                begin = time.monotonic()
                self._measure(report, name)
                took = time.monotonic() - begin
                self.after_each(f"{report.kind.name}, round {turn + 1} of {self.rounds}: {name}, {took:.0f} s")

    def _measure(self, report: KindReport, name: str) -> None:
        if name in report.errors:
            return
        try:
            one = Measurement(STORES[name], report.kind, self.scratch, self.patience).run()
        except ChildError as error:
            report.errors[name] = str(error)
        else:
            report.rounds[name].append(one)


def main() -> None:
    options = _options()
    console = Console() if Console().is_terminal else Console(width=_PAPER)
    report, begin = Report(machine.describe(_PACKAGES)), time.monotonic()
    real = (options.only, options.kinds) == (list(STORES), list(KINDS)) and options.rounds >= _ROUNDS

    def after_each(line: str) -> None:
        console.print(line, style="dim", highlight=False)
        report.seconds = time.monotonic() - begin
        if real:
            report.write(_RESULTS, "stores")  # so that a run that is cut short has something to show

    with tempfile.TemporaryDirectory(prefix=".stores-", dir=Path.cwd()) as scratch:
        bench = Bench(Path(scratch), options.rounds, Patience(options.patience), after_each)
        for name in options.kinds:
            report.kinds.append(KindReport(KINDS[name], {store: [] for store in options.only}))
            bench.measure(report.kinds[-1])
    console.print(*report.tables(), report.closing(), sep="\n")


if __name__ == "__main__":
    main()
