"""Figures for Prometheus, scraped and parsed by its own client."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import numpy as np
import prometheus_client
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

import stoker
import stoker.export
from stoker.export.measures import BOUNDS, cumulative


@pytest.fixture
def registry():
    return prometheus_client.CollectorRegistry()


def scraped(registry) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Samples by name and labels, out of the text that a scrape gives."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in parse_text(prometheus_client.generate_latest(registry).decode()):
        for sample in family.samples:
            own = found.setdefault(sample.name, {})
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in own, "no sample twice"
            own[labels] = sample.value
    return found


@pytest.mark.parametrize("workers", [stoker.Inline(), stoker.Threads(2), stoker.Processes(2)], ids=repr)
def test_a_scrape_says_what_stats_say(workers, registry):
    with stoker.Loader(np.arange(40.0), 4, workers=workers) as loader:
        with stoker.export.prometheus(registry=registry, train=loader):
            list(loader)
            found, stats = scraped(registry), loader.stats()
    label = (("loader", "train"),)
    assert found["stoker_batches_total"][label] == stats.batches == 10
    assert found["stoker_samples_total"][label] == 40
    assert found["stoker_delivered_bytes_total"][label] == 40 * 8
    assert found["stoker_waiting_seconds_total"][label] == pytest.approx(stats.waiting)
    assert found["stoker_workers"][label] == stats.workers
    by_worker = {labels: value for labels, value in found["stoker_worker_batches_total"].items()}
    assert [value for _, value in sorted(by_worker.items())] == [worker.batches for worker in stats.by_worker]
    assert (("loader", "train"), ("station", "fetch"), ("worker", "0")) in found["stoker_worker_time_seconds_total"]


def test_stations_are_histograms(registry):
    with stoker.Loader(np.arange(40.0), 4) as loader, stoker.export.prometheus(registry=registry, train=loader):
        list(loader)
        found, stats = scraped(registry), loader.stats()
    for name, station in stats.stations.items():
        label = (("loader", "train"), ("station", name))
        assert found["stoker_station_seconds_count"][label] == station.spent.count
        assert found["stoker_station_seconds_sum"][label] == pytest.approx(station.spent.total)
        own = [
            (float(dict(labels)["le"]), value)
            for labels, value in found["stoker_station_seconds_bucket"].items()
            if ("station", name) in labels
        ]
        counts = [value for _, value in sorted(own)]
        assert len(counts) == len(BOUNDS) + 1
        assert counts == sorted(counts)
        assert counts[-1] == station.spent.count


def test_no_duration_is_counted_in_a_wrong_bucket():
    from stoker.observe.distribution import Histogram

    durations = np.random.default_rng(0).integers(1, 10**11, 2000) >> np.random.default_rng(1).integers(0, 30, 2000)
    histogram = Histogram()
    histogram.add(np.maximum(durations, 1))
    for bound, count in cumulative(histogram.distribution()):
        assert count == int((np.maximum(durations, 1) < round(bound * 1e9)).sum())


def test_it_is_open_metrics_too(registry):
    from prometheus_client.openmetrics.exposition import generate_latest

    with stoker.Loader(np.arange(8), 4) as loader, stoker.export.prometheus(registry=registry, train=loader):
        list(loader)
        families = {family.name for family in parse_openmetrics(generate_latest(registry).decode())}
    assert {"stoker_batches", "stoker_station_seconds", "stoker_slots"} <= families


def test_several_loaders_are_told_apart_and_can_come_and_go(registry):
    with stoker.Loader(np.arange(8), 4) as train, stoker.stream(abs, range(3)) as items:
        with stoker.export.prometheus(registry=registry, train=train) as exporter:
            exporter.add(items=items)
            list(train), list(items)
            batches = scraped(registry)["stoker_batches_total"]
            assert batches == {(("loader", "train"),): 2, (("loader", "items"),): 3}
            exporter.remove("train")
            assert scraped(registry)["stoker_batches_total"] == {(("loader", "items"),): 3}
            with pytest.raises(ValueError, match="another loader of that name"):
                exporter.add(items=train)
            exporter.add(items=items)
            with pytest.raises(TypeError, match=r"stoker\.Loader"):
                exporter.add(other=3)
        exporter.close()
        assert scraped(registry) == {}


def test_a_loader_is_not_kept_alive(registry):
    loader = stoker.Loader(np.arange(8), 4)
    with stoker.export.prometheus(registry=registry, train=loader):
        list(loader)
        del loader
        gc.collect()
        assert "stoker_batches_total" not in scraped(registry)


def test_a_scrape_while_batches_flow_and_after_close(registry):
    ended = threading.Event()
    seen = []

    def scrape() -> None:
        while not ended.is_set():
            seen.append(scraped(registry)["stoker_batches_total"][(("loader", "train"),)])

    with stoker.Loader(np.arange(4000), 1, workers=stoker.Threads(2)) as loader:
        with stoker.export.prometheus(registry=registry, train=loader):
            thread = threading.Thread(target=scrape)
            thread.start()
            try:
                list(loader)
            finally:
                ended.set()
                thread.join()
            loader.close()
            assert scraped(registry)["stoker_batches_total"] == {(("loader", "train"),): 4000}
    assert seen == sorted(seen)


def test_a_missing_library_is_an_error_that_names_the_extra():
    script = (
        "import sys; sys.modules['prometheus_client'] = sys.modules['opentelemetry'] = None\n"
        "import stoker.export\n"
        "for export in (stoker.export.prometheus, stoker.export.opentelemetry):\n"
        "    try:\n"
        "        export()\n"
        "    except ImportError as error:\n"
        "        assert 'stoker[observe]' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError('no error')\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
