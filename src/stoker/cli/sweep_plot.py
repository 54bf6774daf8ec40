"""A sweep as a picture: samples a second over the number of workers, a line for each kind. Needs matplotlib."""

from __future__ import annotations

from stoker.cli.sweep import Outcome, Sweep


def draw(sweep: Sweep, path: str) -> None:
    """Writes the file, in the format that its name says."""
    from matplotlib.figure import Figure

    measured = [one for one in sweep.outcomes.values() if one.rates]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for kind in ("Processes", "Threads"):
        best = _best_by_count([one for one in measured if one.setting.kind == kind])
        axes.plot(list(best), list(best.values()), marker="o", label=kind)
    for one in measured:
        if one.setting.kind in ("Inline", "Auto"):
            style = ":" if one.setting.kind == "Inline" else "--"
            axes.axhline(one.rate, linestyle=style, color="grey", label=one.setting.name)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="workers", ylabel="samples/s", ylim=(0, None), title="stoker tune")
    axes.legend()
    figure.savefig(path)


def _best_by_count(outcomes: list[Outcome]) -> dict[int, float]:
    """Of all values of ``prefetch``."""
    best: dict[int, float] = {}
    for one in sorted(outcomes, key=lambda one: one.setting.count):
        best[one.setting.count] = max(one.rate, best.get(one.setting.count, 0.0))
    return best
