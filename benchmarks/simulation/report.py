"""What the simulation has found, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.simulation.bottlenecks import Limit
from benchmarks.simulation.costs import Cost
from benchmarks.simulation.coverage import Coverage
from benchmarks.simulation.deaths import Loss
from benchmarks.simulation.fleet import Fleet
from benchmarks.simulation.reality import Match

_MIB, _GIB = 2**20, 2**30


@dataclass
class Report:
    """Fills while the simulation runs."""

    coverage: list[Coverage] = field(default_factory=list)
    fleets: list[Fleet] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    reality: list[Match] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether each sample came once in all that was looked at."""
        exact = [one.is_exact for one in self.coverage] + [one.is_exact for one in self.fleets]
        return all(exact + [one.is_exact for one in self.losses])

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"is_exact": self.is_exact}

    def tables(self) -> Iterator[Table]:
        """Of what there is."""
        makers = (
            (_coverage, self.coverage),
            (_fleets, self.fleets),
            (_costs, self.costs),
            (_limits, self.limits),
            (_losses, self.losses),
            (_reality, self.reality),
        )
        return (make(rows) for make, rows in makers if rows)


def _table(title: str, *heads: str) -> Table:
    table = Table(title=title, title_justify="left")
    for nth, head in enumerate(heads):
        table.add_column(head, justify="right" if nth else "left")
    return table


def _coverage(rows: Sequence[Coverage]) -> Table:
    table = _table("Coverage: all shards of the plan", "samples", "shards", "batches", "what was checked", "exact")
    for row in rows:
        table.add_row(f"{row.samples:,}", f"{row.shards:,}", f"{row.batches:,}" if row.batches else "–", row.how,
                      _yes(row.is_exact))  # fmt: skip
    return table


def _fleets(rows: Sequence[Fleet]) -> Table:
    heads = "consumers", "nodes", "lost", "workers that died", "batches", "each, batches/s", "real s", "exact"
    table = _table("Consumers that were simulated in full, while nodes were lost", *heads)
    for row in rows:
        table.add_row(f"{row.consumers:,} of {row.of:,}", f"{row.nodes:,}", f"{row.lost_nodes}", f"{row.deaths:,}",
                      f"{row.batches:,}", f"{row.batches_per_s:.1f}", f"{row.real_s:.1f}",
                      _yes(row.is_exact))  # fmt: skip
    return table


def _costs(rows: Sequence[Cost]) -> Table:
    heads = "samples", "workers", "real µs a batch", "KiB of the engine", "KiB a worker"
    table = _table("Cost on the consumer's side: Stoker's own code, measured on this machine", *heads)
    for row in rows:
        table.add_row(f"{row.samples:,}", f"{row.workers:,}", f"{row.engine_us:.1f}", f"{row.memory / 1024:,.0f}",
                      f"{row.memory / 1024 / row.workers:.2f}")  # fmt: skip
    return table


def _limits(rows: Sequence[Limit]) -> Table:
    heads = "batch", "workers", "batches/s", "GB/s", "limited by", "busy", "slots, GiB", "a node's store, MiB"
    table = _table("What limits one consumer", *heads)
    for row in rows:
        table.add_row(size(row.batch_bytes), f"{row.workers:,}", f"{row.batches_per_s:,.0f}",
                      f"{row.bytes_per_s / 1e9:.2f}", row.limit, f"{row.busy:.0%}", f"{row.slot_bytes / _GIB:.2f}",
                      f"{row.node_store_bytes / _MIB:,.0f}")  # fmt: skip
    return table


def _losses(rows: Sequence[Loss]) -> Table:
    heads = "one of 8 nodes", "batches/s", "longest wait, s", "died", "exact"
    table = _table("A node is lost, or slow", *heads)
    for row in rows:
        table.add_row(row.title, f"{row.batches_per_s:.0f}", f"{row.longest_wait:.2f}", f"{row.deaths}",
                      _yes(row.is_exact))  # fmt: skip
    return table


def _reality(rows: Sequence[Match]) -> Table:
    table = _table("Real loaders beside the simulation, batches/s", "loader", "real", "simulated", "difference")
    for row in rows:
        table.add_row(row.title, f"{row.real:.1f}", f"{row.simulated:.1f}", f"{row.difference:+.1%}")
    return table


def size(nbytes: int) -> str:
    """In KiB or MiB."""
    return f"{nbytes // 2**20} MiB" if nbytes >= 2**20 else f"{nbytes // 2**10} KiB"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "NO"
