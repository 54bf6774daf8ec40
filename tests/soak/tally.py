"""The figures of a soak, and the table at its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from tests.soak.holdings import Holdings
from tests.soak.ledger import Verdict


@dataclass
class Tally:
    seed: int
    minutes: float = 0.0
    lives: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    loaders: int = 0
    batches: int = 0
    samples: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    resumes: int = 0
    reshards: int = 0
    left_out: int = 0
    lost: int = 0
    repeated: int = 0
    changed: int = 0
    errors: int = 0
    wrong: list[str] = field(default_factory=list)  # all of that, in words
    start: Holdings | None = None
    end: Holdings | None = None

    def deliver(self, samples: int) -> None:
        self.batches += 1
        self.samples += samples

    def judge(self, verdict: Verdict, details: list[str]) -> None:
        self.wrong.extend(details)
        self.lost += verdict.lost
        self.repeated += verdict.repeated
        self.changed += verdict.changed

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.repeated or self.changed or self.wrong)

    @property
    def has_leaked(self) -> bool:
        assert self.start is not None
        assert self.end is not None
        return self.end.leaked_since(self.start)

    def line(self) -> str:
        """For the progress bar."""
        return (
            f"{self.lives.total()} lives, {self.batches:,} batches, {self.faults.total():,} faults, "
            f"{self.resumes:,} resumes, {len(self.wrong)} wrong"
        )

    def as_json(self) -> dict[str, Any]:
        assert self.start is not None
        assert self.end is not None
        plain = {
            "lives": dict(self.lives),
            "kept": dict(self.kept),
            "faults": dict(self.faults),
            "start": asdict(self.start),
        }
        return {**vars(self), **plain, "end": asdict(self.end), "clean": self.is_clean, "leaked": self.has_leaked}

    def table(self) -> Table:
        table = Table("what", "figure", title=f"soak, seed {self.seed}")
        rows = {
            "minutes": f"{self.minutes:.1f}",
            "lives": f"{self.lives.total()} ({_listed(self.lives)})",
            "  that keep": _listed(self.kept),
            "loaders made": f"{self.loaders:,}",
            "batches delivered": f"{self.batches:,}",
            "samples": f"{self.samples:,}",
            "faults survived": f"{self.faults.total():,}",
            **{f"  {name}": f"{count:,}" for name, count in sorted(self.faults.items()) if count},
            "resumes": f"{self.resumes:,}",
            "re-shardings": f"{self.reshards:,}",
            "samples left out by policy": f"{self.left_out:,}",
            "lost": f"{self.lost}",
            "repeated": f"{self.repeated}",
            "changed": f"{self.changed}",
            "errors, hangs": f"{self.errors}",
            **{name: f"{before}, then {after}" for name, before, after in self._holdings()},
        }
        for name, figure in rows.items():
            table.add_row(name, figure)
        return table

    def _holdings(self) -> list[tuple[str, int, int]]:
        assert self.start is not None
        assert self.end is not None
        before, after = asdict(self.start), asdict(self.end)
        return [(name, before[name], after[name]) for name in before]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
