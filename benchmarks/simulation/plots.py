"""The plots of docs/design/scale.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.plot import ACCENT, FAINT, INK, PEER
from benchmarks.simulation import bottlenecks, deaths
from benchmarks.simulation.bottlenecks import Limit
from benchmarks.simulation.costs import Cost
from benchmarks.simulation.deaths import Loss
from benchmarks.simulation.report import Report, size
from benchmarks.simulation.scenario import LINK, LOOP, NODES, RECEIVER, WORKERS

_COLORS = {WORKERS: "#d3f9d8", NODES: "#e5dbff", LINK: "#d0ebff", RECEIVER: "#fff3bf", LOOP: "#ffd8a8"}
_SHOWN_LOSSES = (
    ("in order", "In order"),
    ("in order, a step of 4 ms", "In order, training takes 4 ms a batch"),
    ("the same, prefetch=32", "In order, training takes 4 ms a batch, prefetch=32"),
    ("in_order=False", "in_order=False"),
)


def draw(report: Report, folder: Path) -> list[Path]:
    """Writes what there are figures for."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, rows, make in (
        ("scale_cost", report.costs, _draw_costs),
        ("scale_limits", report.limits, _draw_limits),
        ("scale_loss", report.losses, _draw_losses),
    ):
        if rows:
            figure = make(rows)
            drawn.append(folder / f"{name}.png")
            figure.savefig(drawn[-1], dpi=160, facecolor="white")
    return drawn


def _draw_costs(rows: Sequence[Cost]) -> Any:
    from matplotlib import pyplot

    few = [row for row in rows if row.workers == rows[0].workers][: len({row.samples for row in rows})]
    many = [row for row in rows if row.samples == rows[-1].samples and row not in few]
    figure, (left, right, memory) = pyplot.subplots(1, 3, figsize=(10.5, 3.3))
    most = max(row.engine_us for row in rows)
    for panel, chosen, name, label in (
        (left, few, "samples", f"samples in the dataset ({few[0].workers} workers)"),
        (right, many, "workers", "workers (10¹² samples)"),
    ):
        panel.plot([getattr(row, name) for row in chosen], [row.engine_us for row in chosen], "o-", color=ACCENT)
        panel.set_ylim(0, most * 1.5)
        panel.set_ylabel("µs for a batch", fontsize=9.5, color=INK)
        panel.set_xlabel(label, fontsize=9.5, color=INK)
    memory.plot([row.workers for row in many], [row.memory / 2**10 for row in many], "o-", color=ACCENT)
    memory.set_yscale("log")
    memory.set_ylabel("KiB of the engine, without slots", fontsize=9.5, color=INK)
    memory.set_xlabel("workers (10¹² samples)", fontsize=9.5, color=INK)
    for panel in (left, right, memory):
        panel.set_xscale("log")
        panel.minorticks_off()
        _plain(panel)
    return _titled(figure, "What a batch costs the consumer: Stoker's own code, measured")


def _draw_limits(rows: Sequence[Limit]) -> Any:
    from matplotlib import pyplot
    from matplotlib.patches import Patch, Rectangle

    sizes, workers = sorted({row.batch_bytes for row in rows}), sorted({row.workers for row in rows})
    figure, panel = pyplot.subplots(figsize=(10.5, 4.4))
    for x, count in enumerate(workers):
        for y, nbytes in enumerate(sizes):
            row = bottlenecks.at(rows, nbytes, count)
            panel.add_patch(Rectangle((x, y), 1, 1, facecolor=_COLORS[row.limit], edgecolor="white", linewidth=2))
            panel.text(x + 0.5, y + 0.62, f"{row.batches_per_s:,.0f} batches/s", ha="center", fontsize=9, color=INK)
            told = f"{row.bytes_per_s / 1e9:.2f} GB/s · slots {_gib(row.slot_bytes)}"
            panel.text(x + 0.5, y + 0.25, told, ha="center", fontsize=8, color="#495057")
    panel.set_xlim(0, len(workers))
    panel.set_ylim(0, len(sizes))
    panel.set_xticks([x + 0.5 for x in range(len(workers))], [f"{count:,}" for count in workers])
    panel.set_yticks([y + 0.5 for y in range(len(sizes))], [size(nbytes) for nbytes in sizes])
    panel.set_xlabel("workers of the consumer", fontsize=9.5, color=INK)
    panel.set_ylabel("size of a batch", fontsize=9.5, color=INK)
    panel.tick_params(length=0, labelsize=9, labelcolor=INK)
    for spine in panel.spines.values():
        spine.set_visible(False)
    found = {row.limit for row in rows}
    handles = [Patch(facecolor=color, label=name) for name, color in _COLORS.items() if name in found]
    panel.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9,
                 title="limited by", title_fontsize=9, alignment="left")  # fmt: skip
    return _titled(figure, "What one consumer gets, and what limits it (simulated, 25 Gbit/s)")


def _draw_losses(rows: Sequence[Loss]) -> Any:
    from matplotlib import pyplot

    shown = [(row, title) for name, title in _SHOWN_LOSSES for row in rows if row.title == name]
    figure, panels = pyplot.subplots(len(shown), 1, figsize=(10.5, 1.45 * len(shown) + 0.9), sharex=True)
    for panel, (row, title) in zip(panels, shown, strict=True):
        times = [(number + 0.5) * deaths.BIN_S for number in range(len(row.rates))]
        panel.fill_between(times, row.rates, step="mid", color=ACCENT, alpha=0.25, linewidth=0)
        panel.step(times, row.rates, where="mid", color=ACCENT, linewidth=1.4)
        panel.axvline(deaths.CUT_AT, color=INK, linewidth=1.0, linestyle=(0, (3, 2)))
        panel.set_title(title, loc="left", fontsize=9.5, color=INK, pad=4)
        panel.set_ylim(0, 600)
        panel.set_xlim(0, 35)
        panel.set_yticks([0, 200, 400])
        panel.set_ylabel("batches/s", fontsize=9, color=INK)
        _plain(panel)
    panels[0].annotate("a node of eight is lost", (deaths.CUT_AT, 520), xytext=(6, 0), textcoords="offset points",
                       fontsize=9, color=INK, va="center")  # fmt: skip
    panels[-1].set_xlabel("seconds since the start (simulated)", fontsize=9.5, color=INK)
    return _titled(figure, "The loss of a node, which Ray finds out after 5 s")


def _gib(nbytes: int) -> str:
    gib = nbytes / 2**30
    return f"{gib:.0f} GiB" if gib >= 10 else f"{gib:.1f} GiB" if gib >= 0.1 else f"{nbytes / 2**20:.0f} MiB"


def _plain(panel: Any) -> None:
    panel.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.8)
    panel.tick_params(length=0, labelsize=9, labelcolor=INK)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set_color(PEER)


def _titled(figure: Any, title: str) -> Any:
    figure.suptitle(title, x=0.02, y=0.98, va="top", ha="left", fontsize=12.5, fontweight="bold", color=INK)
    figure.tight_layout(rect=(0, 0, 1, 1.0 - 0.12 / figure.get_figheight()))
    return figure
