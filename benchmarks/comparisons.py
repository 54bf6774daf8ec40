"""Cache and rotation: races whose contenders are the rows of a table, each held against one of the others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.results import Spread, WorkloadResult
from benchmarks.rounds import Race, Settings
from benchmarks.workloads import (
    CACHE,
    DECODING,
    HF_DATASETS,
    KEPT,
    LITDATA,
    MEMMAP,
    MEMMAP_ALONE,
    MEMMAP_RING,
    MOSAIC,
    ROTATION_ALL,
    ROTATION_DISK,
    ROTATION_MEMORY,
    Workload,
)

Prepare = Callable[[Path, float], None]  # writes into a scratch folder, given how many gigabytes there are to be


@dataclass(frozen=True)
class Row:
    """A contender, and a ratio beside it: how many times as fast `of` is as `to`, and is to be."""

    contender: str
    about: str
    of: str
    to: str
    least: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A race and its table; `ratio` is the head of the column of ratios, `length` a round's, beside those of other
    races; `prepare` writes what is loaded; `warm_up` is how long a warm-up may take, also in a quick run; `shuffle`:
    in a shuffled order; `pauses`: contenders are stopped while others are measured.

    A cache is warm when it is full, which takes a second or two. In 1.5 s it gives thirty epochs and the slowest peer
    one. Rotation makes many samples at the beginning of each block and few later, so a round is to have several blocks
    in it.
    """

    workload: Workload
    title: str
    ratio: str
    rows: tuple[Row, ...]
    length: float = 0.6
    prepare: Prepare | None = None
    warm_up: float = 60.0
    shuffle: bool = True
    pauses: bool = False


@dataclass
class ComparisonResult:
    """What was measured."""

    comparison: Comparison
    race: WorkloadResult
    seconds: float  # of a round

    def ratio(self, row: Row) -> Spread | None:
        return None if row.of == row.to else self.race.ratio(row.to, row.of)

    def met(self, row: Row) -> bool | None:
        ratio = self.ratio(row)
        return None if row.least is None or ratio is None else ratio.median >= row.least


def _beside_the_cache(contender: str, about: str, least: float | None = None) -> Row:
    return Row(contender, about, CACHE, contender, least)


def _beside_decoding(contender: str, about: str, least: float | None = None) -> Row:
    return Row(contender, about, contender, DECODING, least)


COMPARISONS: dict[str, Comparison] = {
    comparison.workload.name: comparison
    for comparison in (
        Comparison(
            KEPT["cache"],
            "The same 4000 images of (224,224,3) uint8, kept by each in its own way: 32 a batch, shuffled, warm",
            "Cache, against it",
            (
                _beside_the_cache(CACHE, ""),
                _beside_the_cache(DECODING, "no cache, JPEGs with Pillow", 10.0),
                _beside_the_cache(HF_DATASETS, "Arrow, memory-mapped; torch's DataLoader"),
                _beside_the_cache(LITDATA, "its chunks; StreamingDataLoader"),
                _beside_the_cache(MOSAIC, "MDS; torch's DataLoader"),
                _beside_the_cache(MEMMAP_ALONE, "np.memmap into one batch again and again, in one process", 0.8),
                _beside_the_cache(MEMMAP, "the same in two bare processes, which hand nothing over"),
                _beside_the_cache(MEMMAP_RING, "into three batches in turn, as a loader has in flight"),
            ),
        ),
        Comparison(
            KEPT["rotation"],
            "Rotation, each sample used 4 times: 32 JPEGs a batch, shuffled, steady state",
            "against decoding",
            (
                _beside_decoding(DECODING, "no rotation"),
                _beside_decoding(ROTATION_MEMORY, "512 samples rotate at a time", 3.5),
                _beside_decoding(ROTATION_ALL, "all samples rotate at a time"),
                _beside_decoding(ROTATION_DISK, "512 samples rotate at a time", 3.0),
            ),
        ),
        Comparison(
            KEPT["photos"],
            "The same of photos of 500 × 375, made smaller, which take ten times as long to decode",
            "against decoding",
            (
                _beside_decoding(DECODING, "no rotation"),
                _beside_decoding(ROTATION_MEMORY, "512 samples rotate at a time", 3.5),
                _beside_decoding(ROTATION_DISK, "512 samples rotate at a time", 3.0),
            ),
            length=3.0,
        ),
    )
}


def measure(comparison: Comparison, settings: Settings, on_step: Callable[[str], None]) -> ComparisonResult:
    """Runs the race in a folder of its own, since some gigabytes come together there."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
        if comparison.prepare is not None:
            on_step(f"{comparison.workload.name}: files are written")
            comparison.prepare(Path(scratch), settings.gigabytes)
        seconds = settings.seconds * comparison.length
        how = {"shuffle": comparison.shuffle, "warm_up": comparison.warm_up, "pauses": comparison.pauses}
        ours = replace(settings, scratch=Path(scratch), seconds=seconds, **how)
        race = Race(comparison.workload, ours, lambda doing, _: on_step(doing))
        return ComparisonResult(comparison, race.run(), seconds)
