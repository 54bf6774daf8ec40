"""What was measured, and the arithmetic on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from benchmarks.workloads import LIMIT, STATEFUL, STOKER, TORCH, Workload


@dataclass(frozen=True)
class Round:
    """One round of one contender."""

    batches: float  # those who count samples may end within one
    seconds: float
    cpu_seconds: float
    pss_bytes: int


@dataclass(frozen=True)
class Spread:
    """A median with the lowest and the highest it comes from."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        known = list(values)
        return cls(median(known), min(known), max(known)) if known else None


@dataclass
class WorkloadResult:
    """All rounds of a workload, by contender; one that failed has an error instead of the rest of its rounds."""

    workload: Workload
    rounds: dict[str, list[Round]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def rate(self, contender: str, index: int) -> float | None:
        """Throughput in the workload's unit in one round."""
        if contender == LIMIT and self.workload.ideal is not None:
            return self.workload.ideal
        rounds = self.rounds.get(contender, [])
        if index >= len(rounds):
            return None
        return rounds[index].batches / rounds[index].seconds * self.workload.units_per_batch

    def throughput(self, contender: str) -> Spread | None:
        return Spread.of(rate for index in self._indices() if (rate := self.rate(contender, index)) is not None)

    def ratio(self, to: str, of: str | None = None) -> Spread | None:
        """How many times as fast, round by round, so that what slows a whole round down cancels out."""
        of = of or self.workload.ours
        pairs = ((self.rate(of, index), self.rate(to, index)) for index in self._indices())
        return Spread.of(ours / theirs for ours, theirs in pairs if ours is not None and theirs is not None)

    def cpu(self, contender: str) -> Spread | None:
        """CPU-seconds of the whole tree: per GB where GB are counted, else per 1000 batches."""
        each = self.workload.units_per_batch if self.workload.unit == "GB/s" else 1 / 1000
        return Spread.of(one.cpu_seconds / (one.batches * each) for one in self.rounds.get(contender, []))

    def peak_pss(self, contender: str) -> int | None:
        return max((one.pss_bytes for one in self.rounds.get(contender, [])), default=None)

    def targets(self) -> tuple[tuple[str, float | None], ...]:
        """Whom Stoker is held against, and how many times as fast it is to be."""
        workload = self.workload
        if workload.ours == STOKER:
            return (TORCH, workload.least_of_torch), (LIMIT, workload.least_of_limit)
        return (TORCH, workload.least_of_torch), (STATEFUL, workload.least_of_stateful)

    def verdict(self) -> bool | None:
        """Whether Stoker is as fast as it is to be; None where nothing can be said."""
        found = [(self.ratio(to), least) for to, least in self.targets() if least is not None]
        if not found or any(ratio is None for ratio, _ in found):
            return None
        return all(ratio.median >= least for ratio, least in found if ratio is not None)

    def _indices(self) -> range:
        return range(max((len(rounds) for rounds in self.rounds.values()), default=0))


@dataclass(frozen=True)
class FigureResult:
    """A single figure, its target, and whether it is met (None: it could not be measured)."""

    name: str
    title: str
    value: str
    target: str
    met: bool | None
    raw: dict[str, list[float]] = field(default_factory=dict)
    error: str = ""
