"""Figures, and the sentence that says who waited for whom."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from stoker import Stats
from stoker.engine import Usage
from stoker.observe import Meter
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


@pytest.mark.parametrize(
    ("figures", "words", "others"),
    [
        ({"batches": 0}, ["Nothing was delivered"], []),
        ({"workers": 0, "waited": 9.0}, ["no workers", "90%"], ["start-up"]),
        ({"elapsed": 0.15, "starting": 0.14, "waited": 0.149, "writing": 0.003}, ["start-up"], ["collation", "waited"]),
        ({"starting": 1.0, "waited": 1.1}, ["kept fed", "waited 1%", "Start-up took 1 s"], []),
        ({"starting": 0.1, "waited": 0.1}, ["kept fed", "waited 0%"], ["Start-up"]),
        ({"waited": 5.0, "fetching": 18.0, "writing": 2.0}, ["50%", "90% of their work in dataset[i]"], ["tart-up"]),
        ({"waited": 6.0, "starting": 1.0, "writing": 9.0}, ["56%", "collation", "Start-up took 1 s"], []),
        ({"elapsed": 3.0, "starting": 2.0, "waited": 3.0, "fetching": 2.0}, ["100%", "dataset[i]", "took 2 s"], []),
        ({"waited": 5.0, "writing": 0.1, "idling": 19.0}, ["50%", "idling", "bigger batches"], ["collation"]),
    ],
)
def test_the_diagnosis_tells_start_up_from_waiting(figures, words, others):
    sentence = stats(**figures).diagnosis
    assert [word for word in words if word not in sentence] == []
    assert [word for word in others if word in sentence] == []


def test_what_the_first_batch_took_beyond_its_making_is_start_up():
    meter = Meter(2)
    packed = SimpleNamespace(nbytes=8)
    meter.begin()
    made = Made(packed, 4, (), (), Timing(500 * MS, 500 * MS, 530 * MS, 540 * MS))
    meter.delivered(made, 1, waited=240 * MS, moving=50 * MS)
    meter.handed(4)
    meter.delivered(made, 0, waited=90 * MS, moving=0)
    meter.handed(4)
    found = meter.stats()
    assert (found.starting, found.waited, found.samples) == (0.15, 0.33, 8)


def test_the_meter_adds_up_by_worker_and_over_all():
    meter = Meter(3)
    meter.begin()
    batches = [
        (0, Timing(10 * MS, 20 * MS, 50 * MS, 60 * MS), 5),
        (2, Timing(0, 0, 7 * MS, 9 * MS), 6),
        (0, Timing(60 * MS, 61 * MS, 62 * MS, 65 * MS), 7),
    ]
    for worker, timing, samples in batches:
        made = Made(SimpleNamespace(nbytes=100), samples, (), (), timing)
        meter.delivered(made, worker, waited=2 * MS, moving=MS)
        meter.handed(samples)
    meter.skipped(4)
    found = meter.stats()
    assert (found.batches, found.samples, found.skipped, found.nbytes, found.workers) == (3, 18, 4, 300, 3)
    assert [worker.batches for worker in found.by_worker] == [2, 0, 1]
    assert [worker.samples for worker in found.by_worker] == [12, 0, 6]
    assert [worker.fetching for worker in found.by_worker] == pytest.approx([0.031, 0, 0.007])
    assert [worker.writing for worker in found.by_worker] == pytest.approx([0.013, 0, 0.002])
    assert [worker.idling for worker in found.by_worker] == pytest.approx([0.011, 0, 0])
    for name in ("fetching", "writing", "idling"):
        assert getattr(found, name) == pytest.approx(sum(getattr(worker, name) for worker in found.by_worker))
    assert (found.waited, found.moving) == (0.006, 0.003)
    assert found.samples_per_second == pytest.approx(18 / found.elapsed)


def test_without_workers_there_is_no_start_up():
    meter = Meter(0)
    meter.begin()
    meter.delivered(Made(SimpleNamespace(nbytes=8), 1, (), (), Timing(0, 0, MS, MS)), 0, waited=500 * MS, moving=0)
    assert (meter.stats().starting, meter.stats().workers) == (0, 0)


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
