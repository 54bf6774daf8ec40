"""The plots of the forms of samples and of the drop-in: a row a form, a mark a loader, as far right as it is faster
than torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.plot import ACCENT, FAINT, INK, PEER
from benchmarks.results import WorkloadResult
from benchmarks.workloads import DROP_IN, LIMIT, STATEFUL, STOKER, STOKER_THREADS, TORCH

_MARKS = {
    "Grain": "s", "SPDL": "^", "SPDL, processes": "v", TORCH: "o", LIMIT: "|", STOKER: "o", STOKER_THREADS: "D",
    DROP_IN: "o", STATEFUL: "s",
}  # fmt: skip
_ROW = 0.3  # inches
_TICKS = (0.5, 1, 2, 5, 10, 20)


def draw(results: Sequence[WorkloadResult], names: Sequence[str], path: Path) -> None:
    """Writes the plot; does nothing where nothing was measured, and leaves out forms that torch does not take."""
    shown = [result for result in results if result.ratio(TORCH)]
    if not shown:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(9, 1.2 + _ROW * len(shown)))
    for place, result in enumerate(shown):
        _draw_row(panel, place, result, names)
    panel.set_xscale("log")
    panel.set_xticks(_TICKS, [f"{tick:g}×" for tick in _TICKS])
    panel.minorticks_off()
    panel.set_yticks(range(len(shown)), [result.workload.title for result in shown], fontsize=9, color=INK)
    panel.set_ylim(len(shown) - 0.4, -0.6)
    panel.grid(axis="x", color=PEER, linewidth=0.5, alpha=0.6)
    panel.axvline(1.0, color=FAINT, linewidth=0.8)
    panel.tick_params(length=0, colors=INK, labelsize=9)
    for spine in panel.spines.values():
        spine.set_visible(False)
    panel.legend(*_legend(panel, names), ncols=6, loc="lower left", bbox_to_anchor=(-0.02, 1.0), frameon=False,
                 fontsize=9, handletextpad=0.1, columnspacing=1.2)  # fmt: skip
    panel.set_xlabel("throughput, as a multiple of torch's DataLoader", fontsize=9, color=INK)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
    pyplot.close(figure)


def _draw_row(panel: Any, place: int, result: WorkloadResult, names: Sequence[str]) -> None:
    for name in reversed(names):  # Stoker last, on top
        ratio = result.ratio(TORCH, name)
        if ratio is None:
            continue
        ours = name == result.workload.ours
        color = ACCENT if ours or name == STOKER_THREADS else INK if name == LIMIT else FAINT if name == TORCH else PEER
        panel.scatter(ratio.median, place, marker=_MARKS[name], s=70 if ours else 40, color=color, label=name, zorder=3)
        if ours:
            digits = 0 if ratio.median >= 10 else 1
            panel.text(1.06, place, f"{ratio.median:.{digits}f}×", transform=panel.get_yaxis_transform(), ha="right",
                       va="center", fontsize=9, fontweight="bold", color=ACCENT)  # fmt: skip


def _legend(panel: Any, names: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Each loader once, Stoker first."""
    handles, labels = panel.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))
    known = [name for name in names if name in found]
    return [found[name] for name in known], known
