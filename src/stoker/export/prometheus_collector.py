"""A collector for Prometheus: when it is scraped, it asks each loader for its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from stoker import Stats
from stoker.export.measures import MEASURES, Measure, cumulative
from stoker.export.watched import HasStats, Watched


class PrometheusExporter:
    """Loaders in a registry of Prometheus'. Made by ``stoker.export.prometheus``."""

    def __init__(self, registry: CollectorRegistry | None, loaders: Mapping[str, HasStats]) -> None:
        self._watched = Watched()
        self._watched.add(loaders)
        self._collector = _Collector(self._watched)
        self._registry = REGISTRY if registry is None else registry
        self._is_registered = True
        self._registry.register(self._collector)

    def add(self, **loaders: HasStats) -> None:
        """More loaders, by name."""
        self._watched.add(loaders)

    def remove(self, name: str) -> None:
        """Tells nothing more of that loader."""
        self._watched.remove(name)

    def close(self) -> None:
        """Takes it out of the registry. May be called twice."""
        if self._is_registered:
            self._is_registered = False
            self._registry.unregister(self._collector)

    def __enter__(self) -> PrometheusExporter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Collector(Collector):
    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def describe(self) -> Iterator[Metric]:
        """The names, so that a registry finds those that are there twice."""
        return self._metrics({})

    def collect(self) -> Iterator[Metric]:
        return self._metrics(dict(self._watched.stats()))

    def _metrics(self, stats: dict[str, Stats]) -> Iterator[Metric]:
        for measure in MEASURES:
            family = _family(measure)
            for loader, own in stats.items():
                for labels, value in measure.points(own):
                    family.add_metric([loader, *labels], value)
            yield family
        yield _histogram(stats)


def _family(measure: Measure) -> Any:
    kind = CounterMetricFamily if measure.kind == "counter" else GaugeMetricFamily
    name = "_".join(["stoker", *measure.name.split(".")])
    return kind(name, measure.about, labels=["loader", *measure.labels], unit=measure.unit)


def _histogram(stats: dict[str, Stats]) -> HistogramMetricFamily:
    about = "Time that each batch spent at a station."
    family = HistogramMetricFamily("stoker_station", about, labels=["loader", "station"], unit="seconds")
    for loader, own in stats.items():
        for name, station in own.stations.items():
            buckets = [(repr(bound), count) for bound, count in cumulative(station.spent)]
            family.add_metric([loader, name], [*buckets, ("+Inf", station.spent.count)], station.spent.total)
    return family
