"""Calendar and stations, against what is known of queues."""

from __future__ import annotations

from random import Random

import pytest
from benchmarks.simulation.calendar import Calendar
from benchmarks.simulation.station import Station

SERVED = 200_000
SERVICE_S = 1.0


def test_things_happen_in_the_order_of_their_time_and_those_of_one_time_as_they_were_entered():
    calendar, happened = Calendar(), []
    for name, time in (("c", 2.0), ("a", 1.0), ("d", 2.0), ("b", 1.5)):
        calendar.at(time, lambda name=name: happened.append((name, calendar.now)))
    calendar.run()
    assert happened == [("a", 1.0), ("b", 1.5), ("c", 2.0), ("d", 2.0)]


def test_what_is_entered_late_happens_next_and_time_does_not_go_back():
    calendar, happened = Calendar(), []
    calendar.at(5.0, lambda: calendar.at(1.0, lambda: happened.append(calendar.now)))
    calendar.run()
    assert happened == [5.0]


def test_a_station_serves_one_at_a_time_first_come_first_served():
    calendar, served = Calendar(), []
    station = Station(calendar, seconds=1.0, bytes_per_s=100.0)
    station.serve(100, lambda: served.append(("first", calendar.now)))
    station.serve(0, lambda: served.append(("second", calendar.now)))
    calendar.at(10.0, lambda: station.serve(200, lambda: served.append(("third", calendar.now))))
    calendar.run()
    assert served == [("first", 2.0), ("second", 3.0), ("third", 13.0)]
    assert station.busy_s == 6.0


def _mean_wait(load: float, service) -> float:
    """Of customers that come at random, before they are served. ``service``: how long that takes, in bytes at 1/s."""
    random, calendar, waits = Random(1), Calendar(), []
    station = Station(calendar, bytes_per_s=1.0)

    def arrive() -> None:
        came, needs = calendar.now, service(random)
        station.serve(needs, lambda: waits.append(calendar.now - came - needs))
        if len(waits) < SERVED:
            calendar.after(random.expovariate(load / SERVICE_S), arrive)

    arrive()
    calendar.run()
    return sum(waits) / len(waits)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_the_mean_wait_is_that_of_a_queue_with_equal_service_times(load):
    assert _mean_wait(load, lambda random: SERVICE_S) == pytest.approx(load / (2 * (1 - load)), rel=0.05)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_the_mean_wait_is_that_of_a_queue_with_exponential_service_times(load):
    found = _mean_wait(load, lambda random: random.expovariate(1 / SERVICE_S))
    assert found == pytest.approx(load / (1 - load), rel=0.07)
