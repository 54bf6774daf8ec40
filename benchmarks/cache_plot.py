"""The plot of a cache that is refreshed: a bar an epoch, and a line at what an epoch takes without a cache.

`python -m benchmarks.cache_plot` draws it again from results/latest.json, or from the file that it is given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cache_figures import EPOCHS, REFRESH, REFRESH_EVERY
from benchmarks.plot import ACCENT, FAINT, INK, PEER
from benchmarks.results import FigureResult

_HERE = Path(__file__).parent


def draw(figures: Iterable[FigureResult], path: Path) -> None:
    """Writes the plot; does nothing where the epochs were not measured."""
    raw = next((figure.raw for figure in figures if figure.name == REFRESH and not figure.error), None)
    if raw is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    cached = [median(raw[f"cached.epoch {number}"]) for number in range(EPOCHS)]
    plain = median(seconds for key, runs in raw.items() if key.startswith("plain.") for seconds in runs)
    figure, panel = pyplot.subplots(figsize=(9, 3.6))
    _draw_bars(panel, cached)
    _draw_reference(panel, plain)
    _label(panel, max([*cached, plain]))
    figure.suptitle(f"Epoch time with Cache(..., refresh_every={REFRESH_EVERY})", x=0.02, ha="left", fontsize=13,
                    fontweight="bold", color=INK)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 1.02))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
    pyplot.close(figure)


def _draw_bars(panel: Any, cached: list[float]) -> None:
    for epoch, seconds in enumerate(cached):
        makes = epoch % REFRESH_EVERY == 0
        panel.bar(epoch, seconds, width=0.72, color=PEER if makes else ACCENT)
        style = {"ha": "center", "va": "bottom", "fontsize": 9, "color": INK}
        panel.annotate(f"{seconds:.2f}", (epoch, seconds), (0, 2), textcoords="offset points", **style,
                       fontweight="normal" if makes else "bold")  # fmt: skip


def _draw_reference(panel: Any, plain: float) -> None:
    panel.axhline(plain, color=INK, linewidth=1.1, linestyle=(0, (3, 2)))
    panel.annotate(f"without a cache: {plain:.2f}", (EPOCHS - 0.5, plain), (0, 3), ha="right",
                   textcoords="offset points", fontsize=9, color=INK)  # fmt: skip


def _label(panel: Any, highest: float) -> None:
    from matplotlib.patches import Patch

    panel.set_xlim(-0.6, EPOCHS - 0.4)
    panel.set_ylim(0, highest * 1.1)
    panel.locator_params(axis="y", nbins=5)
    panel.set_xticks(range(EPOCHS))
    panel.set_xlabel("epoch (4000 JPEGs to 224 × 224 pixels, 2 workers)", fontsize=9.5, color=INK)
    panel.set_ylabel("seconds an epoch", fontsize=9.5, color=INK)
    panel.tick_params(length=0, labelsize=9, labelcolor=INK)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set_color(FAINT)
    kinds = (
        Patch(color=PEER, label="samples are made and kept (epochs 0, 4, 8)"),
        Patch(color=ACCENT, label="samples come from the cache"),
    )
    panel.legend(handles=kinds, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9,
                 handlelength=1.0, handleheight=1.0, labelcolor=INK)  # fmt: skip


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else _HERE / "results" / "latest.json"
    figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    draw((FigureResult(**figure) for figure in figures), _HERE.parent / "docs" / "images" / "cache.png")


if __name__ == "__main__":
    main()
