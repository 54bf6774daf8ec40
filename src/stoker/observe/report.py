"""The report: the sentence first, then the table."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stoker.observe.distribution import Distribution
from stoker.observe.recording import STATIONS
from stoker.observe.rules import percent

if TYPE_CHECKING:
    from stoker.observe.stats import Stats

_WIDTH = 110  # of text that goes to no terminal
_OF_WORKERS = ("fetch", "write", "idle")


def show(stats: Stats) -> None:
    """Prints the report, in colours where that is a terminal."""
    Console().print(as_renderable(stats))


def as_text(stats: Stats) -> str:
    """The report as plain text."""
    out = Console(file=StringIO(), width=_WIDTH, color_system=None, force_terminal=False, force_jupyter=False)
    out.print(as_renderable(stats))
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def as_renderable(stats: Stats) -> RenderableType:
    """The report for a console of rich's."""
    parts: list[RenderableType] = [Text(stats.diagnosis, style="bold")]
    if stats.batches and stats.stations and stats.stations["wait"].spent.count:
        parts += [_stations(stats), _workers(stats)]
    if stats.batches:
        parts.append(Padding(Text(_counts(stats)), (0, 1)))
    return Group(*parts)


def _stations(stats: Stats) -> Table:
    table = _table("station", "count", "total", "p50", "p90", "p99", "of workers", "while you waited")
    made = max(stats.fetching + stats.writing + stats.idling, 1e-9)
    for name in STATIONS:
        spent = stats.stations[name].spent
        if spent.count:
            share = percent(spent.total / made) if name in _OF_WORKERS else ""
            during = "" if name in ("wait", "step") else _seconds(stats.stations[name].while_waiting)
            table.add_row(name, f"{spent.count:,}", _seconds(spent.total), *_percentiles(spent), share, during)
    return table


def _workers(stats: Stats) -> RenderableType:
    if not stats.workers:
        return Text("")
    has_nodes = any(worker.node for worker in stats.by_worker)
    table = _table("worker", "batches", "samples", "fetch", "write", "idle", "processor", *(["node"] * has_nodes))
    for number, own in enumerate(stats.by_worker):
        times = map(_seconds, (own.fetching, own.writing, own.idling, own.cpu))
        table.add_row(str(number), f"{own.batches:,}", f"{own.samples:,}", *times, *([own.node] * has_nodes))
    return table


def _counts(stats: Stats) -> str:
    a_slot = stats.nbytes / max(stats.stations["write"].spent.count if stats.stations else 0, 1)
    figures = [
        f"{stats.batches:,} batches and {stats.samples:,} samples in {_seconds(stats.elapsed)}",
        f"{_rate(stats.batches / max(stats.elapsed, 1e-9))} batches/s and {stats.samples_per_second:,.0f} samples/s",
        f"{_bytes(stats.nbytes)} in all",
        f"slots: {stats.slots_made}, of about {_bytes(a_slot)} each; {stats.slots_held} held by you",
        f"workers that died: {stats.deaths}",
        f"samples skipped: {stats.skipped}",
        *([f"samples replaced: {stats.replaced}"] if stats.replaced else []),
        *([f"retries: {stats.retries}"] if stats.retries else []),
    ]
    return " · ".join(figures)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column == "station" else "right")
    return table


def _percentiles(spent: Distribution) -> Iterable[str]:
    return map(_seconds, (spent.p50, spent.p90, spent.p99))


def _seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns" if seconds else "0"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
