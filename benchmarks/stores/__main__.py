"""`python -m benchmarks.stores`: runs the bench of the stores, shows it, and writes results/stores.*.

A quick or partial run only shows what it found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.stores.kinds import KINDS, Kind
from benchmarks.stores.measure import Measurement
from benchmarks.stores.process import ChildError
from benchmarks.stores.report import KindReport, Report
from benchmarks.stores.store import STORES

_RESULTS = Path(__file__).parent.parent / "results"
_PACKAGES = ("numpy", "lmdb", "pyarrow", "xxhash")
_PAPER = 200
_ROUNDS = 3


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description="Stores for the sample cache.")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"of each store (default {_ROUNDS})")
    parser.add_argument("--patience", type=float, default=10.0, help="seconds to wait for others to be quiet (10)")
    parser.add_argument("--only", nargs="+", choices=STORES, default=list(STORES), metavar="STORE")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    return parser.parse_args()


@dataclass(frozen=True)
class Bench:
    scratch: Path
    rounds: int
    patience_s: float
    console: Console

    def measure(self, kind: Kind, names: list[str]) -> KindReport:
        """All stores in turn, round by round; each round begins with another store."""
        report = KindReport(kind, {name: [] for name in names})
        for turn in range(self.rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                self._step(report, name, turn)
        return report

    def _step(self, report: KindReport, name: str, turn: int) -> None:
        if name in report.errors:
            return
        begin = time.monotonic()
        try:
            measurement = Measurement(STORES[name], report.kind, self.scratch, self.patience_s)
            report.rounds[name].append(measurement.run())
        except ChildError as error:
            report.errors[name] = str(error)
        line = f"{report.kind.name}, round {turn + 1} of {self.rounds}: {name}, {time.monotonic() - begin:.0f} s"
        self.console.print(line, style="dim", highlight=False)


def main() -> None:
    options = _options()
    console = Console() if Console().is_terminal else Console(width=_PAPER)
    report, begin = Report(machine.describe(_PACKAGES)), time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".stores-", dir=Path.cwd()) as scratch:
        bench = Bench(Path(scratch), options.rounds, options.patience, console)
        for name in options.kinds:
            report.kinds.append(bench.measure(KINDS[name], options.only))
    report.seconds = time.monotonic() - begin
    console.print(*report.tables(), sep="\n")
    if (options.rounds, options.only, options.kinds) == (_ROUNDS, list(STORES), list(KINDS)):
        report.write(_RESULTS, "stores")


if __name__ == "__main__":
    main()
