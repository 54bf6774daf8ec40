"""The forecast: what it says of other settings, and that it says nothing where the model does not fit the run."""

from __future__ import annotations

import pytest

from stoker.observe.evidence import Evidence
from stoker.observe.forecast import Forecast
from tests.unit.observe.played import played


def forecast_of(**run: object) -> Forecast:
    return Evidence(played(**run)).forecast  # type: ignore[arg-type]


def test_it_gives_the_wait_that_there_was():
    evidence = Evidence(played(fetch=40, step=15, workers=2))
    assert evidence.forecast.now() == pytest.approx(evidence.wait, abs=0.05)


def test_as_many_workers_are_needed_as_make_a_batch_in_the_time_of_a_step():
    forecast = forecast_of(fetch=40, step=15, workers=2)
    assert forecast.workers_needed() == 3
    assert forecast.what_if(workers=3) == pytest.approx(0.0, abs=0.05)
    assert not forecast.is_quick_enough
    assert forecast_of(fetch=40, step=15, workers=3).is_quick_enough


def test_more_workers_than_anybody_has_are_not_asked_for():
    assert forecast_of(fetch=400, step=1).workers_needed() is None


def test_where_the_model_does_not_fit_it_says_nothing():
    evidence = Evidence(played(fetch=40, step=15, workers=2))
    far_off = Forecast(evidence._durations(), evidence.forecast._now, 0, wait=0.9)
    assert far_off.what_if(workers=3) is None
    assert far_off.workers_needed() is None


def test_without_workers_it_tells_how_many_would_do():
    assert forecast_of(fetch=20, step=25, workers=0).workers_needed() == 1
