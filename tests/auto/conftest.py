from __future__ import annotations

import pytest

from stoker.workers.auto import backend, period, site
from tests.auto.restlessness import Determined, Restless


@pytest.fixture
def impatient(monkeypatch):
    """Each answer is a period of its own, so that the number of workers can change with each."""
    monkeypatch.setattr(period, "_SHORTEST_NS", 0)
    monkeypatch.setattr(period, "_BATCHES", 1)
    monkeypatch.setattr(period, "_BY_WORKER", 0)
    monkeypatch.setattr(period, "_PAUSED", 2)
    monkeypatch.setattr(backend, "_SETTLING", 0)


@pytest.fixture(params=[0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 5))])
def restless(monkeypatch, impatient, request):
    """Workers come and go all the time."""
    monkeypatch.setattr(site, "Tuning", lambda **limits: Restless(seed=request.param, **limits))


@pytest.fixture
def determined(monkeypatch, impatient):
    """All workers that there may be are added at once. Gives the tunings that were made."""
    made = []

    def make(**limits):
        made.append(Determined(**limits))
        return made[-1]

    monkeypatch.setattr(site, "Tuning", make)
    return made
