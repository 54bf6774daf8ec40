"""The plot: a panel a workload, a bar a contender, Stoker in the one colour that stands out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import amount
from benchmarks.results import WorkloadResult
from benchmarks.workloads import LIMIT, LOADERS, STOKER

_ACCENT, _PEER, _INK, _FAINT = "#d9480f", "#b8c0c8", "#212529", "#868e96"
_COLUMNS = 2
_ROOM = 1.75  # width of a panel in units of its longest bar: the rest is for the labels


def draw(results: Sequence[WorkloadResult], path: Path) -> None:
    """Writes the plot; does nothing where nothing was measured."""
    shown = [result for result in results if any(result.throughput(name) for name in LOADERS)]
    if not shown:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = -(-len(shown) // _COLUMNS)
    figure, panels = pyplot.subplots(rows, _COLUMNS, figsize=(9, 0.75 + 1.75 * rows), squeeze=False)
    flat = list(panels.flat)
    for panel, result in zip(flat, shown, strict=False):
        _draw_panel(panel, result)
    for panel in flat[len(shown) :]:
        panel.axis("off")
    _explain(flat[len(shown)] if len(flat) > len(shown) else None)
    figure.suptitle("Batches at memory speed: throughput, 2 workers, warm", x=0.02, ha="left", fontsize=13,
                    fontweight="bold", color=_INK)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.4, w_pad=2.0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
    pyplot.close(figure)


def _draw_panel(panel: Any, result: WorkloadResult) -> None:
    names = [name for name in LOADERS if result.throughput(name)]
    rates = {name: spread.median for name in (*names, LIMIT) if (spread := result.throughput(name))}
    unit = rates.get(LIMIT) or rates.get(STOKER) or max(rates.values())
    for place, name in enumerate(names):
        length = rates[name] / unit
        panel.barh(place, length, height=0.68, color=_ACCENT if name == STOKER else _PEER)
        panel.text(length + 0.02, place, _label(result, name), va="center", fontsize=8.5,
                   color=_INK, fontweight="bold" if name == STOKER else "normal", zorder=3,
                   bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
    longest = max(1.0, *(rates[name] / unit for name in names))
    if LIMIT in rates:
        panel.axvline(1.0, color=_INK, linewidth=1, linestyle=(0, (3, 2)), zorder=2)
    panel.set_yticks(range(len(names)), names, fontsize=9, color=_INK)
    panel.set_ylim(4.6, -0.6)  # as high for few bars as for many, so that all bars are equally thick
    panel.set_xlim(0, longest * _ROOM)
    panel.set_xticks([])
    panel.tick_params(length=0)
    for side in ("top", "right", "bottom"):
        panel.spines[side].set_visible(False)
    panel.spines["left"].set_color(_FAINT)
    workload = result.workload
    panel.set_title(f"{workload.name} · {workload.title}", loc="left", fontsize=9.5, color=_INK, pad=5)


def _label(result: WorkloadResult, name: str) -> str:
    rate = f"{amount(result.throughput(name))} {result.workload.unit}"
    if name == STOKER:
        to_limit = result.ratio(LIMIT)
        return rate if to_limit is None else f"{rate}, {to_limit.median:.0%} of limit"
    faster = result.ratio(name)
    return rate if faster is None else f"{rate}   (Stoker {faster.median:.1f}×)"


def _explain(panel: Any) -> None:
    if panel is None:
        return
    text = (
        "Dashed: the limit, the same work in two bare\n"
        "processes without a loader (waiting: 32 / 5 ms).\n"
        "In brackets: how many times as fast Stoker is.\n"
        "SPDL runs threads, the others processes\n"
        "(waiting: all run threads)."
    )
    panel.text(0.0, 0.95, text, transform=panel.transAxes, va="top", fontsize=8.5, color=_FAINT, linespacing=1.5)
