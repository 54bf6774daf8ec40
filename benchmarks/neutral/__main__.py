"""`python -m benchmarks.neutral`: runs DLIO and SPDL's experiment, shows what they found, and writes results/neutral.*,
and dlio.png and transport.png in docs/images.

A quick or partial run writes results/smoke.neutral.* instead, so that it never replaces the figures of a real one.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from benchmarks.neutral import dlio, plot
from benchmarks.neutral.payloads import TRANSPORTS
from benchmarks.neutral.report import Report
from benchmarks.rounds import Race, Settings

_RESULTS = Path(__file__).parents[1] / "results"
_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_REAL, _SMOKE = "neutral", "smoke.neutral"
_DLIO, _TRANSPORT = "dlio", "transport"
_PACKAGES = ("stoker", "dlio_benchmark", "spdl", "torch", "numpy")
_ROUNDS, _EPOCHS, _ROUND_S = 3, 10, 0.5
_WARM_UP_S = 60.0
_PAPER = 160


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.neutral", description="Stoker in benchmarks that others have designed."
    )
    parser.add_argument("which", nargs="*", metavar="WHICH", help=f"{_DLIO}, {_TRANSPORT}, or one of "
                        f"{', '.join((*dlio.WORKLOADS, *TRANSPORTS))} (default: all)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"of each contender (default {_ROUNDS})")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds that DLIO may wait for others to end (0)")
    parser.add_argument("--quick", action="store_true", help="a smoke run: one short round")
    options = parser.parse_args()
    options.which = options.which or [_DLIO, _TRANSPORT]
    allowed = (_DLIO, _TRANSPORT, *dlio.WORKLOADS, *TRANSPORTS)
    if unknown := set(options.which) - set(allowed):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; choose out of {', '.join(allowed)}")
    return options


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that a gigabyte of files is removed
    console, begin = Console() if Console().is_terminal else Console(width=_PAPER), time.monotonic()
    rounds, epochs, seconds = (1, 2, 0.1) if options.quick else (options.rounds, _EPOCHS, _ROUND_S)
    settings = {"rounds": rounds, "epochs": epochs, "seconds": seconds}
    report = Report(machine.describe(_PACKAGES), settings)

    def on_step(doing: str) -> None:
        console.print(f"{time.monotonic() - begin:4.0f} s  {doing}", style="dim", highlight=False)

    with tempfile.TemporaryDirectory(prefix="stoker-neutral-") as folder:
        scratch = Path(folder)
        if workloads := [one for name, one in dlio.WORKLOADS.items() if {_DLIO, name} & set(options.which)]:
            how = dlio.Settings(rounds, epochs, options.patience)
            report.dlio = dlio.measure(dlio.Dlio(scratch), workloads, how, on_step)
        for name, workload in TRANSPORTS.items():
            if {_TRANSPORT, name} & set(options.which):
                on_step(f"transport: {workload.title}, {rounds} rounds of {len(workload.contenders)} contenders")
                ours = Settings(rounds, seconds, _WARM_UP_S, shuffle=False, scratch=scratch)
                report.transport.append(Race(workload, ours, lambda *_: None).run())
    is_real = set(options.which) == {_DLIO, _TRANSPORT} and rounds >= _ROUNDS
    report.write(_RESULTS, _REAL if is_real else _SMOKE)
    plot.draw_dlio(report.dlio, _IMAGES / "dlio.png" if is_real else _RESULTS / f"{_SMOKE}.dlio.png")
    plot.draw_transport(
        report.transport, _IMAGES / "transport.png" if is_real else _RESULTS / f"{_SMOKE}.transport.png"
    )
    console.print(*(table.rich() for table in report.tables()), *report.failures(), sep="\n")
    sys.exit(1 if report.failures() else 0)


if __name__ == "__main__":
    main()
