"""What is shown and written of a run: a table for each benchmark, and every round in the JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table as RichTable

from benchmarks.neutral.dlio import LOADERS, TORCH, Result
from benchmarks.neutral.dlio_summary import Summary
from benchmarks.neutral.payloads import TRANSPORT_CONTENDERS
from benchmarks.report import amount, cost, times
from benchmarks.results import WorkloadResult


@dataclass(frozen=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def rich(self) -> RichTable:
        table = RichTable(*self.head, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return f"{self.title}:\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass
class Report:
    """A run so far: it grows as results come in."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    dlio: list[Result] = field(default_factory=list)
    transport: list[WorkloadResult] = field(default_factory=list)

    def tables(self) -> list[Table]:
        found = [_dlio_table(result) for result in self.dlio]
        return [*found, _transport_table(self.transport), _cost_table(self.transport)] if self.transport else found

    def failures(self) -> list[str]:
        by_name = [(result.workload.name, result.errors) for result in (*self.dlio, *self.transport)]
        return [f"{name}, {who}: {error}" for name, errors in by_name for who, error in errors.items()]

    def markdown(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.machine["versions"].items())
        known = f"{self.machine['cpu']}, {self.machine['cores']} cores, Python {self.machine['python']}; {versions}."
        failures = "\n".join(f"- {line}" for line in self.failures())
        parts = [
            known,
            *(table.markdown() for table in self.tables()),
            f"Not measured:\n{failures}" if failures else "",
        ]
        return "\n\n".join(filter(None, parts)) + "\n"

    def write(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._plain(), indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (folder / f"{name}.md").write_text(self.markdown(), encoding="utf-8")

    def _plain(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "settings": self.settings,
            "dlio": [asdict(result) for result in self.dlio],
            "transport": [
                {
                    "name": result.workload.name,
                    "item_bytes": result.workload.batch_bytes,
                    "rounds": {name: [asdict(one) for one in rounds] for name, rounds in result.rounds.items()},
                    "errors": result.errors,
                }
                for result in self.transport
            ],
        }


def warm_rate(summary: Summary) -> float:
    return summary.warm_rate


def _dlio_table(result: Result) -> Table:
    def row(loader: str) -> list[str]:
        def cell(figure: Callable[[Summary], float]) -> str:
            return amount(result.spread(loader, figure))

        return [
            loader if loader != TORCH else "DLIO's own: torch",
            cell(lambda summary: summary.mean_rate),
            cell(warm_rate),
            f"{cell(lambda summary: summary.mean_utilisation)} %",
            "" if loader == TORCH else times(result.ratio(loader, warm_rate)),
        ]

    ideal = f"{result.workload.ideal:.0f} samples/s would be 100 %"
    busy = f"others used {median(result.others):.2g} cores meanwhile" if result.others else ""
    return Table(
        "; ".join(filter(None, (f"DLIO, {result.workload.title}", ideal, busy))),
        ["data loader", "samples/s", "from the second epoch", "accelerator utilisation", "against torch"],
        [row(loader) for loader in LOADERS if result.rounds[loader]],
    )


def _transport_table(results: Sequence[WorkloadResult]) -> Table:
    ours, *others = TRANSPORT_CONTENDERS
    rows = [
        [
            result.workload.title,
            amount(result.throughput(ours)),
            *(f"{amount(result.throughput(name))} ({_factor(result, name)})" for name in others),
        ]
        for result in results
    ]
    title = "Payloads from one worker process, GB/s (and how many times as fast Stoker is)"
    return Table(title, ["payload", *TRANSPORT_CONTENDERS], rows)


def _cost_table(results: Sequence[WorkloadResult]) -> Table:
    rows = [[one.workload.title, *(cost(one, name) for name in TRANSPORT_CONTENDERS)] for one in results]
    title = "CPU-seconds of 1 GB, and peak memory (PSS) of the process tree"
    return Table(title, ["payload", *TRANSPORT_CONTENDERS], rows)


def _factor(result: WorkloadResult, name: str) -> str:
    ratio = result.ratio(name)
    return "–" if ratio is None else f"{ratio.median:.2f}×" if ratio.median < 10 else f"{ratio.median:.0f}×"
