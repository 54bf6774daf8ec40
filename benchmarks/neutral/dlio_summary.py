"""What DLIO writes about a run, read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import mean
from typing import Any


class SummaryError(Exception):
    """What DLIO wrote is not what it writes after a run with training; the message is one line."""


@dataclass(frozen=True)
class Summary:
    """A run of DLIO: a figure for each epoch.

    Attributes:
        samples_per_s: Of the epoch from its beginning, with the start of workers in the first, to its last step.
        utilisation: Percent of the epoch, without its first step, in which the accelerator, which DLIO simulates by
            sleeping, was busy.
    """

    samples_per_s: tuple[float, ...]
    utilisation: tuple[float, ...]

    @property
    def mean_rate(self) -> float:
        """Samples a second over all epochs, as DLIO reports them."""
        return mean(self.samples_per_s)

    @property
    def mean_utilisation(self) -> float:
        """Percent over all epochs, as DLIO reports them."""
        return mean(self.utilisation)

    @property
    def warm_rate(self) -> float:
        """Samples a second from the second epoch on, when all workers run."""
        return mean(self.samples_per_s[1:])


def parse_summary(text: str) -> Summary:
    """Reads DLIO's `summary.json`.

    Raises:
        SummaryError: It is no JSON, lacks figures, or has fewer than two epochs.
    """
    try:
        metric = json.loads(text)["metric"]
    except (ValueError, KeyError, TypeError):
        raise SummaryError("DLIO's summary is no JSON object with a metric: the run did not finish") from None
    rates = _numbers(metric, "train_throughput_samples_per_second")
    utilisation = _numbers(metric, "train_au_percentage")
    if len(rates) != len(utilisation) or len(rates) < 2:
        raise SummaryError(
            f"DLIO's summary has throughput of {len(rates)} epochs and utilisation of {len(utilisation)}: "
            f"run at least two epochs (train.epochs)"
        )
    return Summary(rates, utilisation)


def _numbers(metric: Any, name: str) -> tuple[float, ...]:
    found = metric.get(name) if isinstance(metric, dict) else None
    if not isinstance(found, list) or not all(type(one) in (int, float) for one in found):
        raise SummaryError(f"DLIO's summary has no list of numbers {name}: run it with workflow.train=True")
    return tuple(map(float, found))
