"""The figures of a cache, epoch by epoch: what filling it costs, and what comes after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.figures import Group, Line, Probe, Raw
from benchmarks.report import times
from benchmarks.results import Spread
from benchmarks.workloads import KEPT

REFRESH = "refresh"  # the name of the line that the plot is drawn from
REFRESH_EVERY, EPOCHS = 4, 12
_FILLING = 1.15
_WARM = range(2, 6)  # epochs: the first after filling has the file's pages to map

Epoch = Callable[[Raw], list[float]]  # seconds, one value a run


def groups() -> Iterator[Group]:
    yield Group(
        "filling",
        (Probe("cached", "caching", {"cached": True, "epochs": _WARM.stop}),
         Probe("plain", "caching", {"cached": False, "epochs": 1}),
         Probe("fresh", "caching", {"cached": True, "epochs": 1, "has_memory": False})),
        (
            _line("filling", "Filling the cache: the first epoch, against the same without a cache",
                  _epoch("cached", "epoch 0"), _epoch("plain", "epoch 0"), most=_FILLING),
            _line("filling_fresh", "The same, the host having yet to hand out the memory",
                  _epoch("fresh", "epoch 0"), _epoch("plain", "epoch 0")),
            _line("filled", "The first epoch from the cache, in the same loader, against later ones",
                  _epoch("cached", "epoch 1"), _warm),
            _line("restarted", "The first epoch after a restart, all checksums being verified, against later ones",
                  _epoch("cached", "restarted"), _warm),
        ),
        runs=7,
    )  # fmt: skip
    yield Group(
        "filling with photos",
        (Probe("cached", "caching", {"cached": True, "epochs": 1, "of_photos": True}),
         Probe("plain", "caching", {"cached": False, "epochs": 1, "of_photos": True})),
        (
            _line("filling_photos", "Filling the cache with photos of 500 × 375, made smaller, against without",
                  _epoch("cached", "epoch 0"), _epoch("plain", "epoch 0"), most=_FILLING, workload="photos"),
        ),
        runs=5,
    )  # fmt: skip
    yield Group(
        "refreshing",
        (Probe("cached", "caching", {"cached": True, "epochs": EPOCHS, "refresh_every": REFRESH_EVERY}),
         Probe("plain", "caching", {"cached": False, "epochs": 3})),
        (
            _line(REFRESH, f"An epoch out of {EPOCHS} with `refresh_every={REFRESH_EVERY}`, against without a cache",
                  _mean("cached", EPOCHS), _mean("plain", 3)),
        ),
        runs=3,
    )  # fmt: skip


def _epoch(label: str, key: str) -> Epoch:
    return lambda raw: raw[f"{label}.{key}"]


def _mean(label: str, epochs: int) -> Epoch:
    keys = [f"{label}.epoch {number}" for number in range(epochs)]
    return lambda raw: [sum(run) / epochs for run in zip(*(raw[key] for key in keys), strict=True)]


def _warm(raw: Raw) -> list[float]:
    return [median(run) for run in zip(*(raw[f"cached.epoch {number}"] for number in _WARM), strict=True)]


def _line(name: str, title: str, of: Epoch, to: Epoch, most: float | None = None, workload: str = "cache") -> Line:
    """Compares epochs, run by run."""

    def ratio(raw: Raw) -> Spread | None:
        return Spread.of(ours / theirs for ours, theirs in zip(of(raw), to(raw), strict=True))

    def value(raw: Raw) -> str:
        ours, theirs = median(of(raw)), median(to(raw))
        samples = KEPT[workload].batches * KEPT[workload].batch_size
        return f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f}: {times(ratio(raw))}; {samples / ours:,.0f} samples/s"

    def met(raw: Raw) -> bool | None:
        found = ratio(raw)
        return None if most is None or found is None else found.median <= most

    return Line(name, title, "–" if most is None else f"≤ {most:g}×", value, met)
