"""Figures, and the sentence that says who waited for whom."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from stoker import Stats
from stoker.engine import Delivery, Usage
from stoker.observe import Meter
from stoker.plan import Batch
from stoker.workers import Made, Timing

MS = 10**6  # nanoseconds


def stats(**others) -> Stats:
    figures = {
        "batches": 50,
        "samples": 1600,
        "skipped": 0,
        "nbytes": 10**6,
        "workers": 2,
        "elapsed": 10.0,
        "waited": 0.0,
    }
    figures |= {"fetching": 0.0, "writing": 0.0, "idling": 0.0, "moving": 0.0, "by_worker": (), "starting": 0.0}
    return Stats(**(figures | others))


def deliver(meter, worker, timing, *, samples=4, nbytes=8, waited=0, moving=0, calls=0, cpu=0):
    made = Made(SimpleNamespace(nbytes=nbytes), samples, (), (), timing, calls, cpu)
    delivery = Delivery(Batch(0, 0, samples, 0), None, made, worker=worker, waited=waited, moving=moving)
    meter.ask()
    meter.delivered(delivery, made, samples)


def test_what_the_first_batch_took_beyond_its_making_is_start_up():
    meter = Meter(2)
    timing = Timing(500 * MS, 500 * MS, 530 * MS, 540 * MS, 540 * MS)
    deliver(meter, 1, timing, waited=240 * MS, moving=50 * MS)
    deliver(meter, 0, timing, waited=90 * MS)
    found = meter.stats()
    assert (found.starting, found.waited, found.samples) == (0.15, 0.33, 8)


@pytest.mark.parametrize("between", [0, 1], ids=["at once", "in between, too"])
def test_the_meter_adds_up_by_worker_and_over_all(between):
    meter = Meter(3)
    batches = [
        (0, Timing(10 * MS, 20 * MS, 50 * MS, 60 * MS, 60 * MS), 5),
        (2, Timing(0, 0, 7 * MS, 9 * MS, 9 * MS), 6),
        (0, Timing(60 * MS, 61 * MS, 62 * MS, 65 * MS, 67 * MS), 7),
    ]
    for worker, timing, samples in batches:
        options = {"waited": 2000 * MS, "moving": MS, "calls": 2, "cpu": 3 * MS}
        deliver(meter, worker, timing, samples=samples, nbytes=100, **options)
        for _ in range(between):
            meter.stats()
    meter.skipped(4, replaced=False)
    meter.skipped(5, replaced=True)
    found = meter.stats()
    assert (found.batches, found.samples, found.skipped, found.nbytes, found.workers) == (3, 18, 4, 300, 3)
    assert found.replaced == 5
    assert [worker.batches for worker in found.by_worker] == [2, 0, 1]
    assert [worker.samples for worker in found.by_worker] == [12, 0, 6]
    assert [worker.calls for worker in found.by_worker] == [4, 0, 2]
    assert [worker.fetching for worker in found.by_worker] == pytest.approx([0.031, 0, 0.007])
    assert [worker.writing for worker in found.by_worker] == pytest.approx([0.013, 0, 0.002])
    assert [worker.idling for worker in found.by_worker] == pytest.approx([0.011, 0, 0])
    assert [worker.transferring for worker in found.by_worker] == pytest.approx([0.002, 0, 0])
    for name in ("fetching", "writing", "idling", "transferring", "cpu", "calls"):
        assert getattr(found, name) == pytest.approx(sum(getattr(worker, name) for worker in found.by_worker))
    assert (found.waited, found.moving, found.cpu) == pytest.approx((6.0, 0.003, 0.009))
    assert found.samples_per_second == pytest.approx(18 / found.elapsed)
    assert found.stations["fetch"].spent.total == pytest.approx(found.fetching)


def test_batches_that_are_cut_of_another_count_and_are_no_work_of_workers():
    meter = Meter(1)
    deliver(meter, 0, Timing(0, 0, MS, 2 * MS, 2 * MS), samples=5)
    for _ in range(3):
        meter.ask()
        meter.handed(5, moving=MS)
    found = meter.stats()
    assert (found.batches, found.samples, found.moving) == (4, 20, 0.003)
    assert (found.by_worker[0].batches, found.stations["fetch"].spent.count) == (1, 1)
    assert (found.stations["wait"].spent.count, found.stations["step"].spent.count) == (4, 3)
    assert (found.stations["move"].spent.count, len(found.slowest)) == (3, 1)


def test_without_workers_there_is_no_start_up():
    meter = Meter(0)
    deliver(meter, 0, Timing(0, 0, MS, MS, MS), waited=500 * MS)
    assert (meter.stats().starting, meter.stats().workers) == (0, 0)


def test_what_is_not_observed_is_counted():
    meter = Meter(2, observe=False)
    deliver(meter, 1, Timing(0, 0, MS, 2 * MS, 2 * MS), waited=MS)
    meter.ask()
    meter.handed(3)
    found = meter.stats()
    assert (found.batches, found.samples, found.nbytes, found.waited) == (2, 7, 8, 0.001)
    assert (found.fetching, found.stations["wait"].spent.count, found.slowest) == (0, 0, ())
    assert "observe=False" in found.diagnosis


def test_stats_can_be_json():
    meter = Meter(2)
    deliver(meter, 1, Timing(0, 0, MS, 2 * MS, 2 * MS), waited=MS)
    found = meter.stats()
    as_json = json.loads(json.dumps(found.to_dict()))
    assert as_json["batches"] == 1
    assert as_json["stations"]["fetch"]["spent"]["p50"] == pytest.approx(0.001, rel=0.05)
    assert as_json["diagnosis"] == found.diagnosis


def test_a_meter_that_has_seen_nothing_says_so():
    found = Meter(2).stats()
    assert (found.elapsed, found.samples_per_second) == (0, 0)
    assert found.diagnosis == "Nothing was delivered yet."


def test_what_is_under_way_is_told_as_it_was_measured():
    found = Meter(2).stats(Usage(runs=4, workers=2, slots=6, held=1))
    assert (found.units_under_way, found.workers_busy, found.slots, found.slots_held) == (4, 2, 6, 1)
    idle = Meter(2).stats()
    assert (idle.units_under_way, idle.workers_busy, idle.slots, idle.slots_held) == (0, 0, 0, 0)


def test_a_short_repr():
    assert repr(stats(waited=2.0, starting=1.5, skipped=3)) == (
        "Stats(50 batches, 1600 samples, 3 skipped, 1000000 bytes, 2 workers, "
        "10 s, of which starting 1.5 s and waited 2 s)"
    )
