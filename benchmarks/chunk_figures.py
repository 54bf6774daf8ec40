"""The figures of chunk files: the memory that reading them takes, and what is reached of a network's bandwidth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from benchmarks.figures import Group, Line, Probe, Raw
from benchmarks.report import times
from benchmarks.results import Spread

MEMORY = "chunks_memory"  # the name of the line that the plot is drawn from
REMOTE, REMOTE_FIRST = "remote", "remote_first"
NAMES = (MEMORY, REMOTE, REMOTE_FIRST)
_FLAT = 1.1  # peak of the last quarter, against that of the first
_OF_BANDWIDTH = 0.9


def memory_groups(gigabytes: float) -> Iterator[Group]:
    """Of four times as much as is raced over, so that the beginning is a small part of it."""
    gigabytes *= 4

    def value(raw: Raw) -> str:
        first, last = _quarters(raw)
        return f"{last / 1e6:.0f} MB against {first / 1e6:.0f}: {last / first:.2f}×"

    def met(raw: Raw) -> bool:
        first, last = _quarters(raw)
        return last / first <= _FLAT

    title = f"{gigabytes:g} GB of JSON lines in one epoch: peak PSS, last quarter against first quarter"
    yield Group(
        "memory of chunk files",
        (Probe("stoker", "chunk_memory", {"gigabytes": gigabytes}),),
        (Line(MEMORY, title, f"≤ {_FLAT:g}×", value, met),),
        runs=1,  # the quarters and the plot are of one run
    )


def series(raw: Mapping[str, list[float]]) -> tuple[list[float], list[float]]:
    """Bytes that were read, and PSS then."""
    numbers = range(sum(key.startswith("stoker.at ") for key in raw))
    return [raw[f"stoker.at {n}"][0] for n in numbers], [raw[f"stoker.pss {n}"][0] for n in numbers]


def _quarters(raw: Raw) -> tuple[float, float]:
    """Peaks of the first and of the last quarter of what was read."""
    ats, sizes = series(raw)
    first = [size for at, size in zip(ats, sizes, strict=True) if at <= ats[-1] / 4]
    last = [size for at, size in zip(ats, sizes, strict=True) if at >= ats[-1] * 3 / 4]
    return max(first), max(last)


def remote_groups() -> Iterator[Group]:
    title = "S3 at 50 ms and 200 Mbit/s, `.npy` of 1 MB, `Threads(16)`, against plain downloads, 16 at a time"
    yield Group(
        "remote",
        (Probe("s3", "remote"),),
        (
            _bandwidth(REMOTE, title, "stoker", least=_OF_BANDWIDTH),
            _bandwidth(REMOTE_FIRST, "The same, a first epoch of 64 files, which prefetches the next", "first"),
        ),
        runs=2,
    )


def _bandwidth(name: str, title: str, key: str, least: float | None = None) -> Line:
    def ratio(raw: Raw) -> Spread | None:
        return Spread.of(ours / limit for ours, limit in zip(raw[f"s3.{key}"], raw["s3.plain"], strict=True))

    def value(raw: Raw) -> str:
        ours, limit, network = (median(raw[f"s3.{which}"]) / 1e6 for which in (key, "plain", "limit"))
        return f"{ours:.1f} MB/s against {limit:.1f}, of {network:.1f}: {times(ratio(raw))}"

    def met(raw: Raw) -> bool | None:
        found = ratio(raw)
        return None if least is None or found is None else found.median >= least

    return Line(name, title, "–" if least is None else f"≥ {least:g}×", value, met)
