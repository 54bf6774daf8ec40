"""Figures for OpenTelemetry, read by its own reader."""

from __future__ import annotations

import numpy as np
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import stoker
import stoker.export


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader):
    provider = MeterProvider([reader])
    yield provider
    provider.shutdown()


def read(reader) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    data = reader.get_metrics_data()
    metrics = (
        []
        if data is None
        else [
            metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
        ]
    )
    return {
        metric.name: {tuple(sorted(point.attributes.items())): point.value for point in metric.data.data_points}
        for metric in metrics
    }


def test_instruments_say_what_stats_say(reader, provider):
    with stoker.Loader(np.arange(40.0), 4, workers=stoker.Threads(2)) as loader:
        with stoker.export.opentelemetry(meter_provider=provider, train=loader):
            list(loader)
            found, stats = read(reader), loader.stats()
    label = (("loader", "train"),)
    assert found["stoker.batches"] == {label: 10}
    assert found["stoker.delivered"] == {label: 320}
    assert found["stoker.waiting"][label] == pytest.approx(stats.waiting)
    assert sum(found["stoker.worker.samples"].values()) == 40
    median = found["stoker.station.duration"][("loader", "train"), ("quantile", "0.5"), ("station", "fetch")]
    assert median == stats.stations["fetch"].spent.p50
    assert found["stoker.station.batches"][("loader", "train"), ("station", "wait")] == 10


def test_counters_grow_and_end_with_the_exporter(reader, provider):
    with stoker.Loader(np.arange(8), 4) as loader, stoker.Loader(np.arange(9), 3) as other:
        with stoker.export.opentelemetry(meter_provider=provider, train=loader) as exporter:
            list(loader)
            assert read(reader)["stoker.batches"] == {(("loader", "train"),): 2}
            exporter.add(test=other)
            list(loader), list(other)
            assert read(reader)["stoker.batches"] == {(("loader", "train"),): 4, (("loader", "test"),): 3}
            exporter.remove("train")
            assert list(read(reader)["stoker.batches"]) == [(("loader", "test"),)]
        assert not read(reader).get("stoker.batches")


def test_units_and_kinds_are_those_of_the_library(reader, provider):
    with stoker.Loader(np.arange(8), 4) as loader:
        with stoker.export.opentelemetry(meter_provider=provider, train=loader):
            list(loader)
            data = reader.get_metrics_data()
    metrics = {one.name: one for one in data.resource_metrics[0].scope_metrics[0].metrics}
    assert metrics["stoker.waiting"].unit == "s"
    assert metrics["stoker.delivered"].unit == "By"
    assert metrics["stoker.batches"].data.is_monotonic
    assert not hasattr(metrics["stoker.slots"].data, "is_monotonic")
