"""`python -m benchmarks`: runs the bench, shows it, and writes results/latest.*, bench.png, forms.png, drop_in.png,
cache.png and chunks_memory.png in docs/images, and the tables of the README and the docs.

A quick or partial run writes results/smoke.* instead, so that it never replaces the figures of a real one.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import (
    cache_figures,
    cache_plot,
    chunk_figures,
    chunk_plot,
    comparisons,
    drop_in_figures,
    figures,
    form_plot,
    machine,
    mixture_figures,
    packing_comparisons,
    pages,
    plot,
    ray_figures,
)
from benchmarks.auto_comparisons import AUTO_COMPARISONS
from benchmarks.chunk_comparisons import CHUNK_COMPARISONS
from benchmarks.comparisons import COMPARISONS
from benchmarks.datasets import write_tokens
from benchmarks.drop_in import DROP_INS
from benchmarks.forms import FORMS
from benchmarks.mixture_comparisons import MIXTURE_COMPARISONS
from benchmarks.packing_comparisons import PACKING_COMPARISONS
from benchmarks.ray_comparisons import RAY_COMPARISONS
from benchmarks.report import Report
from benchmarks.results import WorkloadResult
from benchmarks.rounds import Race, Settings
from benchmarks.terminal import Screen
from benchmarks.workloads import DROP_IN_CONTENDERS, FORM_CONTENDERS, KEPT, LOADERS, STREAMED, WORKLOADS, Workload

_HERE = Path(__file__).parent
_RESULTS = _HERE / "results"
_IMAGES = _HERE.parent / "docs" / "images"
_REAL, _SMOKE = "latest", "smoke"
_WARM_UP_S = 60.0  # an epoch of the slowest peer takes a tenth of it on a quiet machine
_FIGURES, _REMOTE = "figures", "remote"  # what --only calls the single figures, and those of a server far away
_FORMS, _FORM_LENGTH = "forms", 0.2  # and the forms of samples, with their rounds beside those of workloads
_DROP_IN, _DROP_IN_LENGTH = "drop_in", 0.4  # and those of the drop-in for torch's DataLoader
_RAY = "ray"  # and all that is about workers on Ray
_AUTO = "auto"  # and all that is about workers="auto"
_MIXTURES = "mixtures"  # and all that is about mixtures of sources
_RACES = COMPARISONS | CHUNK_COMPARISONS | PACKING_COMPARISONS
_QUICK_GIGABYTES = 0.05


@dataclass(frozen=True)
class Options:
    name: str  # of the files that are written
    only: Sequence[str]
    rounds: int
    seconds: float
    warm_up: float
    shuffle: bool
    runs: int | None  # of each probe; None: as many as each group says
    gigabytes: float  # of JSON lines, and of Parquet


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Stoker beside its peers and the limit.")
    names = (*WORKLOADS, _FORMS, _DROP_IN, _FIGURES, *_RACES, _REMOTE, _RAY, _AUTO, _MIXTURES)
    parser.add_argument("--only", default=",".join(names), help=f"comma-separated, out of: {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per contender (default 5)")
    parser.add_argument("--seconds", type=float, default=2.5, help="length of a round (default 2.5)")
    parser.add_argument("--shuffle", action="store_true", help="shuffle every workload (default: in order)")
    parser.add_argument("--quick", action="store_true", help="a smoke run: one short round, one run of each probe")
    parser.add_argument("--gigabytes", type=float, help="of JSON lines, and of Parquet (default 1, a quick run 0.05)")
    given = parser.parse_args()
    only = given.only.split(",")
    parts = *FORMS, *DROP_INS, *RAY_COMPARISONS, *AUTO_COMPARISONS, *MIXTURE_COMPARISONS
    if unknown := set(only) - {*names, *parts}:
        allowed = ", ".join((*names, *parts))
        parser.error(f"--only: no such workload: {', '.join(sorted(unknown))}; choose out of {allowed}")
    if given.quick:
        return Options(_SMOKE, only, 1, 0.3, 0.5, given.shuffle, 1, given.gigabytes or _QUICK_GIGABYTES)
    name = _REAL if set(only) == set(names) else _SMOKE
    return Options(name, only, given.rounds, given.seconds, _WARM_UP_S, given.shuffle, None, given.gigabytes or 1.0)


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that some gigabytes of files are removed
    chosen = {
        "rounds": options.rounds,
        "seconds": options.seconds,
        "shuffle": options.shuffle,
        "gigabytes": options.gigabytes,
    }
    report = Report(machine.describe(), chosen)
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch, Screen(report) as screen:
        write_tokens(Path(scratch))
        settings = Settings(
            options.rounds, options.seconds, options.warm_up, options.shuffle, Path(scratch), options.gigabytes
        )
        for results, workload, ours in _races(report, options, settings):
            results.append(Race(workload, ours, screen.step).run())
            report.write(_RESULTS, options.name)  # after each: a run that is cut short has something to show
        for group in _groups(options):
            report.figures += figures.measure(group, options.runs, screen.step)
            report.write(_RESULTS, options.name)
        for comparison in _comparisons(options):
            report.comparisons.append(comparisons.measure(comparison, settings, screen.step))
            report.write(_RESULTS, options.name)
    plot.draw(report.workloads, LOADERS, _image(options, "bench"))
    form_plot.draw(report.forms, FORM_CONTENDERS, _image(options, "forms"))
    form_plot.draw(report.drop_ins, DROP_IN_CONTENDERS, _image(options, "drop_in"))
    cache_plot.draw(report.figures, _image(options, "cache"))
    chunk_plot.draw(report.figures, _image(options, "chunks_memory"))
    if options.name == _REAL:
        pages.main()


def _races(
    report: Report, options: Options, settings: Settings
) -> Iterator[tuple[list[WorkloadResult], Workload, Settings]]:
    """The workloads, forms and those of the drop-in that are to be raced, and where their results go."""
    for name, workload in WORKLOADS.items():
        if name in options.only:
            yield report.workloads, workload, settings
    for name, workload in FORMS.items():
        if _FORMS in options.only or name in options.only:
            shuffle, seconds = settings.shuffle or workload.shuffle, settings.seconds * _FORM_LENGTH
            yield report.forms, workload, replace(settings, shuffle=shuffle, seconds=seconds)
    for name, workload in DROP_INS.items():
        if _DROP_IN in options.only or name in options.only:  # some cannot be shuffled, whatever the run asks for
            seconds = settings.seconds * _DROP_IN_LENGTH
            yield report.drop_ins, workload, replace(settings, shuffle=workload.shuffle, seconds=seconds)


def _comparisons(options: Options) -> Iterator[comparisons.Comparison]:
    for name, comparison in _RACES.items():
        if name in options.only:
            yield comparison
    for name, comparison in RAY_COMPARISONS.items():
        if _RAY in options.only or name in options.only:
            yield comparison
    for name, comparison in AUTO_COMPARISONS.items():
        if _AUTO in options.only or name in options.only:
            yield comparison
    for name, comparison in MIXTURE_COMPARISONS.items():
        if _MIXTURES in options.only or name in options.only:
            yield comparison


def _groups(options: Options) -> Iterator[figures.Group]:
    if _DROP_IN in options.only:
        yield from drop_in_figures.groups()
    if _FIGURES in options.only:
        yield from figures.groups()
    if KEPT["cache"].name in options.only:
        yield from cache_figures.groups()
    if STREAMED["jsonl"].name in options.only:
        yield from chunk_figures.memory_groups(options.gigabytes)
    if packing_comparisons.NAME in options.only:
        yield from packing_comparisons.groups()
    if _REMOTE in options.only:
        yield from chunk_figures.remote_groups()
    if _RAY in options.only:
        yield from ray_figures.groups()
    if _MIXTURES in options.only:
        yield from mixture_figures.groups()


def _image(options: Options, name: str) -> Path:
    return _IMAGES / f"{name}.png" if options.name == _REAL else _RESULTS / f"{options.name}.{name}.png"


if __name__ == "__main__":
    main()
