"""The plots: DLIO with a bar for each data loader, and payloads with a line for each transport.

Thin lines reach from the lowest round to the highest. Dashed: training that never waits, and a copy without a loader.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.neutral.dlio import LOADERS, TORCH, Result
from benchmarks.neutral.payloads import KINDS, SIZES_MIB, TRANSPORT_CONTENDERS, TRANSPORTS
from benchmarks.neutral.report import warm_rate
from benchmarks.plot import ACCENT, FAINT, INK, PEER
from benchmarks.report import amount, times
from benchmarks.results import WorkloadResult
from benchmarks.workloads import ONE_COPY, SPDL_POOL, SPDL_QUEUE, SPDL_RING, SPDL_SMALL_POOL, STREAM_OF_PAYLOADS

_RATES_AT, _USED_AT, _FACTORS_AT = 1.2, 1.45, 1.95  # columns of text, in units of the ideal
_LINES: dict[str, dict[str, Any]] = {
    STREAM_OF_PAYLOADS: {"color": ACCENT, "marker": "o", "linewidth": 2.2, "markersize": 7, "zorder": 4},
    SPDL_SMALL_POOL: {"color": "#495057", "marker": "D", "linewidth": 1.4, "markersize": 5},
    SPDL_POOL: {"color": FAINT, "marker": "v", "linewidth": 1.4, "markersize": 6},
    SPDL_RING: {"color": FAINT, "marker": "s", "linewidth": 1.4, "markersize": 5},
    SPDL_QUEUE: {"color": PEER, "marker": "^", "linewidth": 1.4, "markersize": 6},
    ONE_COPY: {"color": INK, "linewidth": 1.1, "linestyle": (0, (3, 2))},
}
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def draw_dlio(results: Sequence[Result], path: Path) -> None:
    """Writes the plot of DLIO; does nothing where nothing was measured."""
    shown = [result for result in results if any(result.rounds.values())]
    if not shown:
        return
    pyplot = _pyplot()
    figure, panels = pyplot.subplots(len(shown), 1, figsize=(9, 0.7 + 1.35 * len(shown)), squeeze=False)
    for panel, result in zip(panels.flat, shown, strict=True):
        _draw_loaders(panel, result)
    heads = (_RATES_AT, "samples/s"), (_USED_AT, "utilisation"), (_FACTORS_AT, "to torch")
    for place, text in heads:
        panels.flat[0].text(place, -0.85, text, ha="right", fontsize=8.5, color=FAINT)
    _save(figure, path, "DLIO, from the second epoch on")


def draw_transport(results: Sequence[WorkloadResult], path: Path) -> None:
    """Writes the plot of payloads; does nothing where not all of them were measured."""
    by_name = {result.workload.name: result for result in results}
    if set(by_name) != set(TRANSPORTS):
        return
    pyplot = _pyplot()
    figure, panels = pyplot.subplots(1, len(KINDS), figsize=(9, 3.7), sharey=True)
    for panel, kind in zip(panels.flat, KINDS, strict=True):
        _draw_kind(panel, kind, [by_name[f"{kind}_{mib}"] for mib in SIZES_MIB])
    panels.flat[0].set_ylabel("GB/s", fontsize=9, color=INK)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, loc="lower center", frameon=False, fontsize=9, handlelength=2.6)
    _save(figure, path, "Payloads from one worker process to the consumer", bottom=0.15)


def _draw_loaders(panel: Any, result: Result) -> None:
    names = [name for name in LOADERS if result.rounds[name]]
    for place, name in enumerate(names):
        ours, rate = name != TORCH, result.spread(name, warm_rate)
        used, ratio = result.spread(name, lambda summary: summary.mean_utilisation), result.ratio(name, warm_rate)
        if rate is None or used is None:
            continue
        style = {"va": "center", "ha": "right", "fontsize": 9, "color": INK, "fontweight": "bold" if ours else "normal"}
        panel.barh(place, rate.median / result.workload.ideal, height=0.66, color=ACCENT if ours else PEER)
        panel.plot([rate.low / result.workload.ideal, rate.high / result.workload.ideal], [place] * 2, color=INK)
        panel.text(_RATES_AT, place, amount(rate), **style)
        panel.text(_USED_AT, place, f"{used.median:.0f} %", **style)
        panel.text(_FACTORS_AT, place, times(ratio) if ours else "", **style)
    panel.plot([1, 1], [len(names) - 0.5, -0.5], color=INK, linewidth=1.1, linestyle=(0, (3, 2)))
    panel.set_yticks(range(len(names)), names, fontsize=9, color=INK)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(0, _FACTORS_AT)
    panel.set_xticks([])
    panel.set_title(result.workload.title, loc="left", fontsize=9.5, color=INK, pad=5)
    _bare(panel)


def _draw_kind(panel: Any, kind: str, results: Sequence[WorkloadResult]) -> None:
    for name in TRANSPORT_CONTENDERS:
        found = {place: spread for place, one in enumerate(results) if (spread := one.throughput(name))}
        panel.plot(list(found), [spread.median for spread in found.values()], label=name, **_LINES[name])
        for place, spread in found.items():
            panel.plot([place] * 2, [spread.low, spread.high], color=_LINES[name]["color"], linewidth=1, alpha=0.6)
    panel.set_yscale("log")
    panel.set_yticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    panel.set_ylim(_TICKS[0], _TICKS[-1])
    panel.minorticks_off()
    panel.set_xticks(range(len(SIZES_MIB)), [f"{mib} MiB" for mib in SIZES_MIB])
    panel.set_xlim(-0.25, len(SIZES_MIB) - 0.75)
    panel.grid(axis="y", color=PEER, linewidth=0.5, alpha=0.6)
    panel.set_title(kind, loc="left", fontsize=9.5, color=INK, pad=5)
    _bare(panel)


def _bare(panel: Any) -> None:
    panel.tick_params(length=0, colors=INK, labelsize=9)
    for spine in panel.spines.values():
        spine.set_visible(False)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, path: Path, title: str, bottom: float = 0.0) -> None:
    figure.suptitle(title, x=0.02, ha="left", fontsize=13, fontweight="bold", color=INK)
    figure.tight_layout(rect=(0, bottom, 1, 1), h_pad=1.2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
    _pyplot().close(figure)
