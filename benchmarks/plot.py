"""The plot: a panel a workload, a bar a contender, Stoker in the one colour that stands out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import amount
from benchmarks.results import WorkloadResult
from benchmarks.workloads import LIMIT, STOKER

ACCENT, PEER, INK, FAINT = "#d9480f", "#b8c0c8", "#212529", "#868e96"
_COLUMNS = 2
_RATES_AT, _FACTORS_AT = 1.45, 2.05  # columns of text, in units of the longest bar


def draw(results: Sequence[WorkloadResult], loaders: Sequence[str], path: Path) -> None:
    """Writes the plot; does nothing where nothing was measured."""
    shown = [result for result in results if any(result.throughput(name) for name in loaders)]
    if not shown:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = -(-len(shown) // _COLUMNS)
    figure, panels = pyplot.subplots(rows, _COLUMNS, figsize=(9, 0.75 + 1.75 * rows), squeeze=False)
    flat = list(panels.flat)
    for panel, result in zip(flat, shown, strict=False):
        _draw_panel(panel, result, loaders)
    for panel in flat[len(shown) :]:
        panel.axis("off")
    _explain(flat[len(shown)] if len(flat) > len(shown) else None)
    figure.suptitle("Throughput, 2 workers, warm epochs", x=0.02, ha="left", fontsize=13,
                    fontweight="bold", color=INK)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.4, w_pad=2.0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
    pyplot.close(figure)


def _draw_panel(panel: Any, result: WorkloadResult, loaders: Sequence[str]) -> None:
    names = [name for name in loaders if result.throughput(name)]
    rates = {name: spread.median for name in (*names, LIMIT) if (spread := result.throughput(name))}
    longest = max(rates.values())
    for place, name in enumerate(names):
        ours = name == STOKER
        style = {"va": "center", "fontsize": 8.5, "color": INK, "fontweight": "bold" if ours else "normal"}
        panel.barh(place, rates[name] / longest, height=0.68, color=ACCENT if ours else PEER)
        panel.text(_RATES_AT, place, amount(result.throughput(name)), ha="right", **style)
        panel.text(_FACTORS_AT, place, _factor(result, name), ha="right", **style)
    bottom, top = len(names) - 0.5, -0.5
    panel.plot([0, 0], [bottom, top], color=FAINT, linewidth=0.8)
    if LIMIT in rates:
        panel.plot([rates[LIMIT] / longest] * 2, [bottom, top], color=INK, linewidth=1.1, linestyle=(0, (3, 2)))
    panel.set_yticks(range(len(names)), names, fontsize=9, color=INK)
    panel.set_ylim(4.6, -0.6)  # as high for few bars as for many, so that all bars are equally thick
    panel.set_xlim(0, _FACTORS_AT)
    panel.set_xticks([])
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    workload = result.workload
    title = f"{workload.name} · {workload.title}, {workload.unit}"
    panel.set_title(title, loc="left", fontsize=9.5, color=INK, pad=5)


def _factor(result: WorkloadResult, name: str) -> str:
    """Stoker's part of the limit; for a peer, how many times as fast Stoker is."""
    ratio = result.ratio(LIMIT if name == STOKER else name)
    if ratio is None:
        return ""
    if name == STOKER:
        return f"{ratio.median:.0%} of limit"
    digits = 0 if ratio.median >= 10 else 1 if ratio.median >= 2 else 2
    return f"{ratio.median:.{digits}f}×"


def _explain(panel: Any) -> None:
    if panel is None:
        return
    text = (
        "Dashed: the limit, the same work in two bare\n"
        "processes without a loader (waiting: 32 / 5 ms).\n"
        "5×: Stoker is five times as fast.\n"
        "SPDL runs threads where it does not say processes\n"
        "(waiting: all run threads)."
    )
    panel.text(0.0, 0.95, text, transform=panel.transAxes, va="top", fontsize=8.5, color=FAINT, linespacing=1.5)
