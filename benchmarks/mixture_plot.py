"""The plot of a mixture: the shares that its sources really have, against those that a schedule asks for.

`python -m benchmarks.mixture_plot` draws it again, into docs/images. Nothing is measured: the order is arithmetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import stoker
from benchmarks.plot import ACCENT, INK

_PATH = Path(__file__).parents[1] / "docs" / "images" / "mixture.png"
_NAMES = ("web", "code", "books")
_SCHEDULE = [(0, (0.75, 0.15, 0.1)), (150, (0.6, 0.3, 0.1)), (300, (0.35, 0.45, 0.2))]  # by step
_COLOURS = (ACCENT, "#2f6db3", "#6b7280")
_STEPS, _BATCH, _MEAN = 450, 64, 5  # steps that are drawn; samples in one; steps that shares are taken over


def shares(by: Any) -> np.ndarray[Any, Any]:
    """Of each source in each step, as batches have them."""
    sources = {name: range(10**6) for name in _NAMES}
    mix = stoker.Mix(sources, _SCHEDULE, by=by, length=_STEPS * _BATCH, tag="source")
    with stoker.Loader(mix, _BATCH, shuffle=True) as loader:
        return np.array([np.bincount(numbers, minlength=len(_NAMES)) / _BATCH for _, numbers in loader])


def draw(path: Path) -> None:
    """Writes the plot."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for panel, by in zip(panels, ("quota", "chance"), strict=True):
        _draw_panel(panel, shares(by))
        panel.set_title(f'by="{by}"', loc="left", fontsize=10, color=INK)
    panels[0].set_ylabel(f"share of {_MEAN} batches of {_BATCH}", color=INK)
    figure.suptitle("Shares that are asked for (thin) and that batches have", x=0.02, ha="left", fontsize=13,
                    fontweight="bold", color=INK)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 1.02))
    figure.savefig(path, dpi=150)


def _draw_panel(panel: Any, found: np.ndarray[Any, Any]) -> None:
    steps = np.arange(0, _STEPS, _MEAN)
    for number, (name, colour) in enumerate(zip(_NAMES, _COLOURS, strict=True)):
        real = found[:, number].reshape(-1, _MEAN).mean(axis=1)
        panel.step(steps, real, where="post", color=colour, linewidth=2.2, alpha=0.75, label=name)
        edges = [*(step for step, _ in _SCHEDULE), _STEPS]
        asked = [weights[number] for _, weights in _SCHEDULE]
        panel.stairs(asked, edges, baseline=None, color=INK, linewidth=0.8)
        panel.text(_STEPS + 6, asked[-1], name, color=colour, va="center", fontsize=9)
    panel.set_ylim(0, 1)
    panel.set_xlim(0, _STEPS + 75)
    panel.set_xticks([step for step, _ in _SCHEDULE] + [_STEPS])
    panel.set_xlabel("step", color=INK)
    panel.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    draw(_PATH)
