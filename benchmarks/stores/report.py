"""What is shown and written: a table a kind, every round in the JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from benchmarks.stores.kinds import Kind
from benchmarks.stores.measure import Round
from benchmarks.stores.quiet import QUIET

_COLUMNS: dict[str, Callable[[list[Round]], str]] = {
    "fill, 1 writer": lambda rounds: _rate(one.fill_1 for one in rounds),
    "2 writers": lambda rounds: _rate(one.fill_2 for one in rounds),
    "read, 1 reader": lambda rounds: _rate(one.read_1 for one in rounds),
    "2 readers": lambda rounds: _rate(one.read_2 for one in rounds),
    "first pass, 1 reader": lambda rounds: _rate(one.first_1 for one in rounds),
    "at once: fill": lambda rounds: _rate(one.mixed_fill for one in rounds),
    "at once: read": lambda rounds: _rate(one.mixed_read for one in rounds),
    "fill, CPU µs a sample": lambda rounds: f"{median(one.fill_cpu_us for one in rounds):.2f}",
    "read, CPU µs a sample": lambda rounds: f"{median(one.read_cpu_us for one in rounds):.2f}",
    "open": lambda rounds: f"{median(one.open_s for one in rounds) * 1e3:.1f} ms",
    "disk, bytes a sample": lambda rounds: f"{median(one.disk_bytes for one in rounds):,.0f}",
    "left by a killed writer": lambda rounds: _killed(rounds),
}


@dataclass
class KindReport:
    kind: Kind
    rounds: dict[str, list[Round]]
    errors: dict[str, str] = field(default_factory=dict)

    def rows(self) -> list[list[str]]:
        return [[name, *(cell(some) for cell in _COLUMNS.values())] for name, some in self.rounds.items() if some]


@dataclass
class Report:
    machine: dict[str, Any]
    seconds: float = 0.0
    kinds: list[KindReport] = field(default_factory=list)

    def tables(self) -> list[RenderableType]:
        tables: list[RenderableType] = []
        for one in self.kinds:
            table = Table("store", *_COLUMNS, title=_title(one.kind), title_justify="left")
            for row in one.rows():
                table.add_row(*row)
            tables += [table, *(f"{name}: {error}" for name, error in one.errors.items())]
        return tables

    def write(self, folder: Path, name: str) -> None:
        found = {one.kind.name: {"rounds": _plain(one.rounds), "errors": one.errors} for one in self.kinds}
        whole = {"machine": self.machine, "seconds": round(self.seconds), "kinds": found}
        (folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
        (folder / f"{name}.md").write_text(self._markdown())

    def _markdown(self) -> str:
        lines = ["# Stores for the sample cache", "", _machine(self.machine), ""]
        for one in self.kinds:
            heads = ["store", *_COLUMNS]
            lines += [f"**{_title(one.kind)}**", "", _line(heads), _line(["---"] * len(heads)), *map(_line, one.rows())]
            lines += ["", *(f"{name}: {error}" for name, error in one.errors.items())]
        return "\n".join([*lines, self.closing()]) + "\n"

    def closing(self) -> str:
        steps = [
            others for one in self.kinds for some in one.rounds.values() for step in some for others in step.others
        ]
        disturbed = sum(others > QUIET for others in steps)
        return (
            "Samples a second of all processes together: the median of the rounds, and ± half of the distance between\n"
            "the lowest and the highest. Killed: samples of the dead writer that can be read, of those it had said to\n"
            f"be stored. Every round is in the JSON file. The run took {self.seconds:.0f} s; in {disturbed} of its "
            f"{len(steps)} steps\nothers used more than {QUIET:g} of a core."
        )


def _title(kind: Kind) -> str:
    return f"{kind.count:,} {kind.name} of {kind.title}; batches of {kind.batch}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _machine(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    known = (machine["cpu"], f"{machine['cores']} cores", f"{machine['memory_gb']} GB", machine["system"])
    return f"{', '.join(known)}; Python {machine['python']}; {versions}"


def _rate(values: Iterable[float]) -> str:
    known = list(values)
    return f"{_short(median(known))} ± {(max(known) - min(known)) / 2 / median(known):.0%}"


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate < 10_000 else f"{rate / 1000:,.0f} k" if rate < 1e6 else f"{rate / 1e6:.2f} M"


def _killed(rounds: list[Round]) -> str:
    kills = [one.kill for one in rounds if one.kill is not None]
    if not kills:
        return "–"
    share = f"{sum(one.readable for one in kills):,} of {sum(one.told for one in kills):,}"
    torn, missing = sum(one.torn for one in kills), sum(one.missing for one in kills)
    return share + f", {torn:,} torn" * bool(torn) + f", {missing:,} of the survivor missing" * bool(missing)


def _plain(rounds: dict[str, list[Round]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [asdict(one) for one in some] for name, some in rounds.items()}
