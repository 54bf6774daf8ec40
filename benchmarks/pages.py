"""`python -m benchmarks.pages`: puts the tables of the last whole run into the README and the docs.

A page says where each is to stand, between two marks: `<!-- bench forms -->` and `<!-- /bench forms -->`. A whole run
of the bench does it at its end. Targets are for us, and stay in results/latest.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import (
    cache_figures,
    chunk_figures,
    drop_in_figures,
    figures,
    mixture_figures,
    packing_comparisons,
    ray_figures,
)
from benchmarks.auto_comparisons import AUTO_COMPARISONS
from benchmarks.chunk_comparisons import CHUNK_COMPARISONS
from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.mixture_comparisons import MIXTURE_COMPARISONS
from benchmarks.packing_comparisons import PACKING_COMPARISONS
from benchmarks.ray_comparisons import RAY_COMPARISONS
from benchmarks.report import about, amount, cost, counted, table, times
from benchmarks.results import Round, Spread, WorkloadResult
from benchmarks.workloads import CONTENDERS, DROP_IN_CONTENDERS, FORM_CONTENDERS, LIMIT, STATEFUL, TORCH

_ROOT = Path(__file__).parent.parent
_LATEST = Path(__file__).parent / "results" / "latest.json"
_MARKED = r"(<!-- bench {name} -->\n)(.*?)(\n<!-- /bench {name} -->)"

Run = dict[str, Any]  # what results/latest.json holds


@dataclass(frozen=True)
class Section:
    """The tables between one pair of marks."""

    races: str = ""  # the key of their results
    contenders: Sequence[str] = ()
    held_against: Sequence[str] = ()
    figures: Collection[str] = ()
    comparisons: dict[str, Comparison] = field(default_factory=dict)

    def text(self, run: Run) -> str:
        parts = [self._race_table(run[self.races])] if run.get(self.races) else []
        found = [one for one in run["figures"] if one["name"] in self.figures]
        if found:
            parts.append(table(["figure", "measured"], ([one["title"], one["value"]] for one in found)))
        parts += [
            _comparison(self.comparisons[result["name"]], result)
            for result in run["comparisons"]
            if result["name"] in self.comparisons
        ]
        return "\n\n".join(parts)

    def _race_table(self, results: Iterable[Run]) -> str:
        ours = self.contenders[0]
        head = ["workload", *self.contenders, *(f"{ours}/{other}" for other in self.held_against)]
        rows = []
        for result in results:
            cells = [amount(_spread(result["throughput"], name)) for name in self.contenders]
            ratios = [times(_spread(result["stoker_over"], other)) for other in self.held_against]
            name = f"**{result['name']}**: {result['title']}, {result['unit']}"
            rows.append([name, f"**{cells[0]}**", *cells[1:], *ratios])
        return table(head, rows)


def _comparison(comparison: Comparison, result: Run) -> str:
    head = ["", "", result["unit"], result["ratio"], f"CPU of {counted(result['unit'])} · peak PSS"]
    rows = []
    for row in comparison.rows:
        name = row.contender
        ratio = times(_spread(result["ratios"], name))
        speed = amount(_spread(result["throughput"], name))
        rows.append([f"**{name}**", row.about, speed, ratio, _cost(comparison, result, name)])
    return f"{result['title']}, rounds of {result['seconds']:g} s:\n\n" + table(head, rows)


def _cost(comparison: Comparison, result: Run, contender: str) -> str:
    rounds = {contender: [Round(**one) for one in result["rounds"].get(contender, [])]}
    return cost(WorkloadResult(comparison.workload, rounds), contender)


def _spread(spreads: dict[str, Run], name: str) -> Spread | None:
    return Spread(**spreads[name]) if name in spreads else None


def _lines(groups: Callable[..., Iterable[figures.Group]], *given: Any) -> tuple[str, ...]:
    return tuple(line.name for group in groups(*given) for line in group.lines)


def _sections() -> dict[str, Section]:
    return {
        "workloads": Section("workloads", CONTENDERS, (TORCH, LIMIT)),
        "forms": Section("forms", FORM_CONTENDERS, (TORCH, LIMIT)),
        "figures": Section(figures=_lines(figures.groups)),
        "drop_in": Section("drop_ins", DROP_IN_CONTENDERS, (TORCH, STATEFUL), drop_in_figures.NAMES),
        "cache": Section(figures=_lines(cache_figures.groups), comparisons=COMPARISONS),
        "chunks": Section(figures=chunk_figures.NAMES, comparisons=CHUNK_COMPARISONS),
        "packing": Section(figures=_lines(packing_comparisons.groups), comparisons=PACKING_COMPARISONS),
        "mixtures": Section(figures=mixture_figures.NAMES, comparisons=MIXTURE_COMPARISONS),
        "ray": Section(figures=ray_figures.NAMES, comparisons=RAY_COMPARISONS),
        "auto": Section(comparisons=AUTO_COMPARISONS),
    }


def fill(page: str, run: Run) -> str:
    """The page with the run's tables between its marks."""
    for name, section in _sections().items():
        marked = re.compile(_MARKED.format(name=name), re.DOTALL)
        if marked.search(page) and (text := section.text(run)):  # what was not measured again stays as it is
            page = marked.sub(lambda found, text=text: f"{found[1]}\n{text}\n{found[3]}", page)
    told = about(run["machine"], run["settings"])
    return re.sub(_MARKED.format(name="about"), lambda found: found[1] + told + found[3], page, flags=re.DOTALL)


def main() -> None:
    run = json.loads(_LATEST.read_text(encoding="utf-8"))
    for path in [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]:
        page = path.read_text(encoding="utf-8")
        if (filled := fill(page, run)) != page:
            path.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
