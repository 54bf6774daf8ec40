"""What there is to tell of a loader: names, units, and where it is in ``Stats``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from stoker import Distribution, Stats

Labels = tuple[str, ...]
Points = Iterator[tuple[Labels, float]]

# Upper ends of the buckets of histograms, in seconds: powers of four from a microsecond to a minute. They are ends of
# the finer buckets of a Distribution, too, so that nothing is counted by guess.
BOUNDS = tuple(2.0**power / 1e9 for power in range(10, 38, 2))
_ROUNDING = 1 + 1e-9  # of an upper end that was worked out as a float


@dataclass(frozen=True)
class Measure:
    """One figure.

    Attributes:
        name: In parts, as in ``worker.cpu``.
        kind: "counter": it only grows. "gauge": as it is at the moment.
        unit: As both libraries write it; empty: a number of things.
        about: What it says.
        labels: What tells its points apart, beside the loader.
        points: The labels' values and the figure, out of ``Stats``.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    about: str
    labels: Labels
    points: Callable[[Stats], Points]


def _of(attribute: str) -> Callable[[Stats], Points]:
    return lambda stats: iter([((), float(getattr(stats, attribute)))])


def _of_worker(attribute: str) -> Callable[[Stats], Points]:
    return lambda stats: (
        ((str(number),), float(getattr(worker, attribute))) for number, worker in enumerate(stats.by_worker)
    )


def _of_stations_of_workers(stats: Stats) -> Points:
    for number, worker in enumerate(stats.by_worker):
        spent = {"idle": worker.idling, "fetch": worker.fetching, "write": worker.writing}
        for station, seconds in (spent | {"transfer": worker.transferring}).items():
            yield (str(number), station), seconds


def _while_waiting(stats: Stats) -> Points:
    for name, station in stats.stations.items():
        yield (name,), station.while_waiting


MEASURES = (
    Measure("batches", "counter", "", "Batches delivered.", (), _of("batches")),
    Measure("samples", "counter", "", "Samples delivered.", (), _of("samples")),
    Measure("skipped.samples", "counter", "", "Samples left out because of errors.", (), _of("skipped")),
    Measure("replaced.samples", "counter", "", "Samples replaced by others because of errors.", (), _of("replaced")),
    Measure("retries", "counter", "", "Times that a read that had failed was tried again.", (), _of("retries")),
    Measure("delivered", "counter", "bytes", "Bytes of arrays delivered.", (), _of("nbytes")),
    Measure("dataset.calls", "counter", "", "Samples that dataset[i] was called for.", (), _of("calls")),
    Measure("worker.deaths", "counter", "", "Workers that died and were replaced.", (), _of("deaths")),
    Measure("elapsed", "counter", "seconds", "Time from the first request to the last batch.", (), _of("elapsed")),
    Measure("waiting", "counter", "seconds", "Time that the consumer spent in next().", (), _of("waiting")),
    Measure("starting", "counter", "seconds", "Time until workers were up.", (), _of("starting")),
    Measure("workers", "gauge", "", "Number of workers; 0 inline.", (), _of("workers")),
    Measure("workers.busy", "gauge", "", "Workers that have something to do.", (), _of("workers_busy")),
    Measure("units.under_way", "gauge", "", "Units of work that are made or ready.", (), _of("units_under_way")),
    Measure("slots", "gauge", "", "Blocks of shared memory.", (), _of("slots")),
    Measure("slots.held", "gauge", "", "Blocks of shared memory that the consumer holds.", (), _of("slots_held")),
    Measure("worker.batches", "counter", "", "Batches that a worker made.", ("worker",), _of_worker("batches")),
    Measure("worker.samples", "counter", "", "Samples that a worker made.", ("worker",), _of_worker("samples")),
    Measure("worker.cpu", "counter", "seconds", "Processor time of a worker.", ("worker",), _of_worker("cpu")),
    Measure(
        "worker.time",
        "counter",
        "seconds",
        "Time that a worker, or its batches on their way here, spent at a station.",
        ("worker", "station"),
        _of_stations_of_workers,
    ),
    Measure(
        "while_waiting",
        "counter",
        "seconds",
        "Time spent at a station, over all workers, while the consumer waited.",
        ("station",),
        _while_waiting,
    ),
)


def cumulative(spent: Distribution) -> list[tuple[float, int]]:
    """How many took no longer than each of ``BOUNDS``."""
    return [(bound, sum(count for upper, count in spent.counts if upper <= bound * _ROUNDING)) for bound in BOUNDS]
