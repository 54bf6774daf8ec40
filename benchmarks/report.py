"""What is written of a run: the Markdown tables and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.comparisons import ComparisonResult, Row
from benchmarks.results import FigureResult, Spread, WorkloadResult
from benchmarks.workloads import CONTENDERS, DROP_IN_CONTENDERS, FORM_CONTENDERS

_NAMES = tuple(dict.fromkeys((*CONTENDERS, *FORM_CONTENDERS, *DROP_IN_CONTENDERS)))


@dataclass
class Report:
    """A run so far: it grows as workloads and figures come in."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    workloads: list[WorkloadResult] = field(default_factory=list)
    forms: list[WorkloadResult] = field(default_factory=list)
    drop_ins: list[WorkloadResult] = field(default_factory=list)
    figures: list[FigureResult] = field(default_factory=list)
    comparisons: list[ComparisonResult] = field(default_factory=list)

    def write(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._plain(), indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (folder / f"{name}.md").write_text(self.markdown(), encoding="utf-8")

    def _plain(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "settings": self.settings,
            "workloads": [_plain_workload(result) for result in self.workloads],
            "forms": [_plain_workload(result) for result in self.forms],
            "drop_ins": [_plain_workload(result) for result in self.drop_ins],
            "figures": [asdict(figure) for figure in self.figures],
            "comparisons": [_plain_comparison(result) for result in self.comparisons],
        }

    def markdown(self) -> str:
        parts = [about(self.machine, self.settings)]
        if self.workloads:
            parts += [_throughput_table(self.workloads, CONTENDERS), _cost_table(self.workloads, CONTENDERS)]
        if self.forms:
            throughput = _throughput_table(self.forms, FORM_CONTENDERS)
            title = "Samples in the forms that people have, most of 1 KB and 256 a batch; SPDL with default_collate"
            parts.append(f"{title}:\n\n{throughput}")
        if self.drop_ins:
            throughput = _throughput_table(self.drop_ins, DROP_IN_CONTENDERS)
            title = "The drop-in for torch's DataLoader, all given the same arguments"
            parts += [f"{title}:\n\n{throughput}", _cost_table(self.drop_ins, DROP_IN_CONTENDERS)]
        if self.figures:
            parts.append(_figure_table(self.figures))
        parts += map(_comparison_table, self.comparisons)
        failures = _failures(
            [*self.workloads, *self.forms, *self.drop_ins, *(result.race for result in self.comparisons)], self.figures
        )
        if failures:
            parts.append("Not measured:\n" + "\n".join(f"- {line}" for line in failures))
        return "\n\n".join(parts) + "\n"


def _plain_workload(result: WorkloadResult) -> dict[str, Any]:
    workload = result.workload
    return {
        "name": workload.name,
        "title": workload.title,
        "unit": workload.unit,
        "batch_size": workload.batch_size,
        "batch_bytes": workload.batch_bytes,
        "ideal": workload.ideal,
        "targets": {f"of_{to.lower()}": least for to, least in result.targets()},
        "throughput": _plain_spreads({name: result.throughput(name) for name in _NAMES}),
        "stoker_over": _plain_spreads({name: result.ratio(name) for name in _NAMES if name != workload.ours}),
        "met": result.verdict(),
        "rounds": {name: [asdict(one) for one in rounds] for name, rounds in result.rounds.items()},
        "errors": result.errors,
    }


def _plain_comparison(result: ComparisonResult) -> dict[str, Any]:
    race, workload = result.race, result.comparison.workload
    ratios = {row.contender: result.ratio(row) for row in result.comparison.rows}
    return {
        "name": workload.name,
        "title": result.comparison.title,
        "seconds": result.seconds,
        "unit": workload.unit,
        "batch_size": workload.batch_size,
        "throughput": _plain_spreads({row.contender: race.throughput(row.contender) for row in result.comparison.rows}),
        "ratio": result.comparison.ratio,
        "ratios": _plain_spreads(ratios),
        "targets": {row.contender: row.least for row in result.comparison.rows if row.least is not None},
        "met": {row.contender: result.met(row) for row in result.comparison.rows if row.least is not None},
        "rounds": {name: [asdict(one) for one in rounds] for name, rounds in race.rounds.items()},
        "errors": race.errors,
    }


def _plain_spreads(spreads: dict[str, Spread | None]) -> dict[str, Any]:
    return {name: asdict(spread) for name, spread in spreads.items() if spread is not None}


def about(machine: dict[str, Any], settings: dict[str, Any]) -> str:
    """Where and how it was measured."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}; {versions}. "
        f"Medians of {settings['rounds']} alternated rounds of {settings['seconds']:g} s, 2 workers, warm; "
        f"{'shuffled' if settings['shuffle'] else 'in order'}. "
        "Ratios are medians of the rounds' ratios (lowest–highest). SPDL runs threads."
    )


def _throughput_table(results: Sequence[WorkloadResult], names: Sequence[str]) -> str:
    head = ["workload", *names, *(f"{names[0]}/{to}" for to, _ in results[0].targets()), ""]
    rows = []
    for result in results:
        cells = [amount(result.throughput(name)) for name in names]
        name = f"**{result.workload.name}**: {result.workload.title}, {result.workload.unit}"
        rows.append([name, f"**{cells[0]}**", *cells[1:], *target_cells(result), mark(result.verdict())])
    return table(head, rows)


def _cost_table(results: Iterable[WorkloadResult], names: Sequence[str]) -> str:
    rows = []
    for result in results:
        per = counted(result.workload.unit)
        rows.append([f"**{result.workload.name}**, per {per}", *(cost(result, name) for name in names)])
    return "CPU-seconds and peak memory (PSS) of the whole process tree:\n\n" + table(["workload", *names], rows)


def counted(unit: str) -> str:
    """What CPU-seconds are told for."""
    return "1 GB" if unit == "GB/s" else "1000 batches"


def _figure_table(figures: Iterable[FigureResult]) -> str:
    rows = [[figure.title, figure.value, figure.target, mark(figure.met)] for figure in figures]
    return table(["figure", "measured", "target", ""], rows)


def _comparison_table(result: ComparisonResult) -> str:
    rows = [[f"**{cells[0]}**", *cells[1:]] for cells in map(partial(comparison_cells, result), result.comparison.rows)]
    return f"{comparison_title(result)}:\n\n" + table(comparison_head(result), rows)


def comparison_title(result: ComparisonResult) -> str:
    return f"{result.comparison.title}, rounds of {result.seconds:g} s"


def comparison_head(result: ComparisonResult) -> list[str]:
    unit = result.race.workload.unit
    return ["", "", unit, result.comparison.ratio, f"CPU of {counted(unit)} · peak PSS", ""]


def comparison_cells(result: ComparisonResult, row: Row) -> list[str]:
    """A row of the table."""
    race, name = result.race, row.contender
    found = amount(race.throughput(name)), times(result.ratio(row), row.least), cost(race, name)
    return [name, row.about, *found, mark(result.met(row))]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _failures(workloads: Iterable[WorkloadResult], figures: Iterable[FigureResult]) -> list[str]:
    lines = [
        f"{result.workload.name}, {name}: {error}" for result in workloads for name, error in result.errors.items()
    ]
    # Probes fail a group at a time: each error once.
    return lines + list(dict.fromkeys(f"{figure.name}, {figure.error}" for figure in figures if figure.error))


def amount(spread: Spread | None) -> str:
    """A throughput with three digits that mean something."""
    if spread is None:
        return "–"
    value = spread.median
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def times(spread: Spread | None, least: float | None = None) -> str:
    """A ratio with its spread, and its target where it has one."""
    if spread is None:
        return "–"
    target = f", target {least:g}" if least is not None else ""
    return f"{spread.median:.2f}× ({spread.low:.2f}–{spread.high:.2f}{target})"


def target_cells(result: WorkloadResult) -> list[str]:
    return [times(result.ratio(to), least) for to, least in result.targets()]


def cost(result: WorkloadResult, contender: str) -> str:
    """CPU-seconds and peak memory in one cell."""
    cpu, pss = result.cpu(contender), result.peak_pss(contender)
    return "–" if cpu is None or pss is None else f"{cpu.median:.3g} s · {pss / 1e6:,.0f} MB"


def mark(met: bool | None) -> str:
    return {True: "met", False: "missed", None: ""}[met]
