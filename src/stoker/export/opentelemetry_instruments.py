"""Instruments of OpenTelemetry that are observed: a reader asks them, and they ask each loader for its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter

import stoker
from stoker.export.measures import MEASURES, Measure
from stoker.export.watched import HasStats, Watched

_UNITS = {"seconds": "s", "bytes": "By", "": "1"}  # as OpenTelemetry writes them


class OpenTelemetryExporter:
    """Loaders as instruments of OpenTelemetry. Made by ``stoker.export.opentelemetry``."""

    def __init__(self, meter_provider: MeterProvider | None, loaders: Mapping[str, HasStats]) -> None:
        self._watched = Watched()
        self._watched.add(loaders)
        _make_instruments(get_meter("stoker", stoker.__version__, meter_provider), self._watched)

    def add(self, **loaders: HasStats) -> None:
        """More loaders, by name."""
        self._watched.add(loaders)

    def remove(self, name: str) -> None:
        """Tells nothing more of that loader."""
        self._watched.remove(name)

    def close(self) -> None:
        """Tells nothing more: instruments cannot be taken away again. May be called twice."""
        self._watched.clear()

    def __enter__(self) -> OpenTelemetryExporter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _make_instruments(meter: Meter, watched: Watched) -> None:
    """An instrument for each measure, and one for percentiles: OpenTelemetry has no histograms that are observed."""
    for measure in MEASURES:
        make = meter.create_observable_counter if measure.kind == "counter" else meter.create_observable_gauge
        make(f"stoker.{measure.name}", [_observer(measure, watched)], _UNITS[measure.unit], measure.about)
    about = "Time that a batch spends at a station: the median, and what one in ten and one in a hundred exceeds."
    meter.create_observable_gauge("stoker.station.duration", [_percentiles(watched)], "s", about)
    about = "Batches that have passed a station."
    meter.create_observable_counter("stoker.station.batches", [_passed(watched)], "1", about)


Callback = Callable[[CallbackOptions], Iterable[Observation]]


def _observer(measure: Measure, watched: Watched) -> Callback:
    def observe(options: CallbackOptions) -> Iterable[Observation]:
        for loader, stats in watched.stats():
            for labels, value in measure.points(stats):
                yield Observation(value, _attributes(loader, **dict(zip(measure.labels, labels, strict=True))))

    return observe


def _percentiles(watched: Watched) -> Callback:
    def observe(options: CallbackOptions) -> Iterable[Observation]:
        for loader, stats in watched.stats():
            for name, station in stats.stations.items():
                spent = station.spent
                for quantile, value in (("0.5", spent.p50), ("0.9", spent.p90), ("0.99", spent.p99)):
                    if spent.count:
                        yield Observation(value, _attributes(loader, station=name, quantile=quantile))

    return observe


def _passed(watched: Watched) -> Callback:
    def observe(options: CallbackOptions) -> Iterable[Observation]:
        for loader, stats in watched.stats():
            for name, station in stats.stations.items():
                yield Observation(station.spent.count, _attributes(loader, station=name))

    return observe


def _attributes(loader: str, **others: str) -> dict[str, Any]:
    return {"loader": loader, **others}
