"""The plot of the memory that reading chunk files takes, over what has been read.

`python -m benchmarks.chunk_plot` draws it again from results/latest.json, or from the file that it is given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.chunk_figures import MEMORY, series
from benchmarks.plot import ACCENT, FAINT, INK
from benchmarks.results import FigureResult

_HERE = Path(__file__).parent


def draw(figures: Iterable[FigureResult], path: Path) -> None:
    """Writes the plot; does nothing where the memory was not measured."""
    raw = next((figure.raw for figure in figures if figure.name == MEMORY and not figure.error), None)
    if raw is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ats, sizes = series(raw)
    figure, panel = pyplot.subplots(figsize=(9, 3.0))
    panel.plot([at / 1e9 for at in ats], [size / 1e6 for size in sizes], color=ACCENT, linewidth=1.6)
    panel.set_xlim(0, ats[-1] / 1e9)
    panel.set_ylim(0, max(sizes) / 1e6 * 1.25)
    panel.set_xlabel(
        "GB of JSON lines read, in files of 8 MB (one epoch, shuffled, 2 workers)", fontsize=9.5, color=INK
    )
    panel.set_ylabel("MB (PSS)", fontsize=9.5, color=INK)
    panel.locator_params(axis="y", nbins=5)
    panel.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.8)
    panel.tick_params(length=0, labelsize=9, labelcolor=INK)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set_color(FAINT)
    figure.suptitle("Memory of consumer and workers", x=0.02, ha="left", fontsize=13, fontweight="bold", color=INK)
    figure.tight_layout(rect=(0, 0, 1, 1.02))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
    pyplot.close(figure)


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else _HERE / "results" / "latest.json"
    figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    draw((FigureResult(**figure) for figure in figures), _HERE.parent / "docs" / "images" / "chunks_memory.png")


if __name__ == "__main__":
    main()
