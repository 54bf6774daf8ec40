"""Figures of loaders for Prometheus and OpenTelemetry, by their own client libraries. Uses the public face only.

    measures.py                       what there is to tell, whoever it is told to
    watched.py                        the loaders that it is told of
    prometheus_collector.py           asked by Prometheus' registry
    opentelemetry_instruments.py      asked by OpenTelemetry's readers

Nothing is measured for it that is not measured anyway: when somebody asks, ``loader.stats()`` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stoker.export.opentelemetry_instruments import OpenTelemetryExporter
    from stoker.export.prometheus_collector import PrometheusExporter
    from stoker.export.watched import HasStats

__all__ = ["opentelemetry", "prometheus"]

_MISSING = '{} is not installed: pip install "stoker[observe]"'


def prometheus(*, registry: Any = None, **loaders: HasStats) -> PrometheusExporter:
    """Has Prometheus scrape the figures of loaders and streams.

    Each figure has the label ``loader``: the name that you pass it by. A loader is not kept alive; once it is garbage
    collected, its figures are gone.

    Args:
        registry: A ``prometheus_client.CollectorRegistry``. None: the default one, which
            ``prometheus_client.start_http_server`` serves.
        loaders: Loaders and streams, by name. ``exporter.add(name=loader)`` adds more.

    Returns:
        An exporter. ``close()``, or a ``with`` statement, takes it out of the registry.

    Raises:
        ImportError: ``prometheus_client`` is not installed.

    Example:
        >>> import numpy as np, prometheus_client, stoker, stoker.export
        >>> registry = prometheus_client.CollectorRegistry()
        >>> with stoker.Loader(np.arange(10), 5) as loader, stoker.export.prometheus(registry=registry, train=loader):
        ...     for batch in loader:
        ...         pass
        ...     registry.get_sample_value("stoker_batches_total", {"loader": "train"})
        2.0
    """
    try:
        from stoker.export.prometheus_collector import PrometheusExporter
    except ImportError as error:
        raise ImportError(_MISSING.format("prometheus_client")) from error
    return PrometheusExporter(registry, loaders)


def opentelemetry(*, meter_provider: Any = None, **loaders: HasStats) -> OpenTelemetryExporter:
    """Has OpenTelemetry read the figures of loaders and streams, as observable instruments.

    Args:
        meter_provider: None: the global one.
        loaders: Loaders and streams, by the name that is the attribute ``loader``. ``exporter.add(name=loader)`` adds
            more. They are not kept alive.

    Returns:
        An exporter. After ``close()``, or the end of a ``with`` statement, it tells nothing more.

    Raises:
        ImportError: ``opentelemetry-api`` is not installed.
    """
    try:
        from stoker.export.opentelemetry_instruments import OpenTelemetryExporter
    except ImportError as error:
        raise ImportError(_MISSING.format("opentelemetry-api")) from error
    return OpenTelemetryExporter(meter_provider, loaders)
