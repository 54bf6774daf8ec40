"""Stoker's engine in a simulated world: it is the same each time, nothing is lost, and limits are what they must be."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from benchmarks.simulation import bottlenecks, fleet
from benchmarks.simulation.assumptions import HERE, ON_RAY, steady, varied
from benchmarks.simulation.coverage import delivered, shards_of
from benchmarks.simulation.report import Report
from benchmarks.simulation.scenario import LINK, RECEIVER, WORKERS, Failure, Scenario, simulate

from stoker import Processes, Ray, Threads
from stoker.plan import Plan

BATCH, SAMPLE_S = 8, 5e-3
BATCH_S = BATCH * SAMPLE_S
PLAN = Plan(10**12, BATCH, shuffle=True)
UNEVEN = varied(SAMPLE_S, spread=0.5, stragglers=0.05, factor=8.0)
LOSSES = Scenario(
    [PLAN], UNEVEN, 600, Ray(6), nodes=3, cores=3, failures=[Failure(0, 4.0, 2.0), Failure(1, 14.0, 9.0)], step_s=0.02
)


def _history(scenario):
    consumer = simulate(scenario).consumers[0]
    return consumer.times, consumer.starts, consumer.makers


def test_the_same_scenario_gives_the_same_history():
    assert _history(LOSSES) == _history(LOSSES)


def test_another_seed_of_service_times_gives_another():
    other = replace(LOSSES, service=varied(SAMPLE_S, spread=0.5, seed=1))
    assert _history(LOSSES) != _history(other)


@pytest.mark.parametrize("workers", [Ray(5), Processes(5), Threads(5)])
@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_whatever_workers_take_each_batch_comes_once_and_in_order(workers, prefetch):
    plan = Plan(1003, BATCH, shuffle=True, seed=3)
    outcome = simulate(Scenario([plan], UNEVEN, 3 * len(plan), workers, prefetch=prefetch))
    consumer = outcome.consumers[0]
    assert delivered([plan], [consumer.starts])
    assert (consumer.cursor.epoch, consumer.cursor.position) == (3, 0)


def test_the_loss_of_nodes_loses_no_batch_and_repeats_none():
    outcome = simulate(LOSSES)
    assert outcome.deaths() > 2
    assert delivered([PLAN], [outcome.consumers[0].starts])


@pytest.mark.parametrize("seed", [1, 3])
def test_many_nodes_lost_within_seconds_are_held_against_no_batch(seed):
    random = Random(seed)
    failures = [Failure(number, 8.0 + 2.0 * random.random()) for number in range(5)]
    scenario = Scenario([PLAN], varied(SAMPLE_S, spread=0.3, seed=seed), 9000, Ray(56), nodes=8, cores=21)
    outcome = simulate(replace(scenario, failures=failures))
    assert outcome.deaths() == 35
    assert delivered([PLAN], [outcome.consumers[0].starts])


def test_out_of_order_each_batch_comes_once_as_well():
    plan = Plan(1003, BATCH, shuffle=True, seed=3)
    failures = [Failure(0, 4.0, 2.0)]
    outcome = simulate(Scenario([plan], UNEVEN, len(plan), Ray(5), nodes=5, cores=2, failures=failures, in_order=False))
    starts = list(outcome.consumers[0].starts)
    assert starts != sorted(starts)
    assert sorted(starts) == [batch.start for batch in plan.batches(0)]


def test_shards_that_share_a_cluster_get_all_samples_between_them():
    found = fleet.small()
    assert found.deaths > 10
    assert found.is_exact


def test_a_sample_that_is_missing_or_comes_twice_is_found():
    plans = shards_of(Plan(64, BATCH, shard=(0, 2)))
    right = [[batch.start for batch in plan.batches(0)] for plan in plans]
    assert delivered(plans, right)
    assert not delivered(plans, [right[0], right[0]])
    assert not delivered(plans, [right[0], [right[1][0], *right[1][2:]]])
    assert not delivered(plans, [right[0], [right[1][0], *right[1]]])


def test_workers_that_are_always_busy_make_as_many_batches_as_their_time_allows():
    outcome = simulate(Scenario([PLAN], steady(SAMPLE_S), 1000, Threads(7), assumptions=HERE, skip=50))
    assert outcome.batches_per_s == pytest.approx(7 / BATCH_S, rel=0.01)
    assert outcome.utilization()[WORKERS] == pytest.approx(1.0, rel=0.01)


def test_a_slow_step_is_all_that_limits_the_consumer():
    outcome = simulate(Scenario([PLAN], steady(SAMPLE_S), 200, Threads(7), step_s=0.1, assumptions=HERE, skip=20))
    each = 0.1 + HERE.run_s + HERE.batch_s
    assert outcome.batches_per_s == pytest.approx(1 / each, rel=1e-6)


def test_a_link_lets_through_as_many_bytes_as_it_can():
    scenario = Scenario([PLAN], steady(SAMPLE_S), 1000, Ray(60), nodes=20, sample_bytes=4 * 2**20, skip=300)
    outcome = simulate(scenario)
    nbytes = BATCH * scenario.sample_bytes
    assert outcome.batches_per_s * nbytes == pytest.approx(ON_RAY.consumer_bytes_per_s, rel=0.01)
    assert outcome.utilization()[LINK] == pytest.approx(1.0, rel=0.01)


def test_the_receiver_takes_its_time_for_each_call_and_each_byte():
    slow = replace(ON_RAY, copy_bytes_per_s=1e9)
    scenario = Scenario(
        [PLAN], steady(SAMPLE_S), 1000, Ray(60), nodes=20, sample_bytes=2**20, skip=300, assumptions=slow
    )
    outcome = simulate(scenario)
    each = slow.call_s + BATCH * scenario.sample_bytes / slow.copy_bytes_per_s
    assert outcome.batches_per_s == pytest.approx(1 / each, rel=0.02)
    assert outcome.utilization()[RECEIVER] == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("size", [1000, 400_000, 3 * 2**20])
def test_memory_stays_within_what_the_page_about_ray_says(size):
    workers, prefetch = 12, 3
    outcome = simulate(
        Scenario([PLAN], steady(1e-4), 3000, Ray(workers), nodes=4, sample_bytes=size, prefetch=prefetch, step_s=0.01)
    )
    largest = max(BATCH * size, 16 * 2**20)
    assert outcome.slot_bytes() <= (workers * prefetch + 1) * largest
    assert outcome.stored_bytes() <= 2 * workers // 4 * largest


def test_with_more_workers_one_consumer_comes_to_a_limit_that_is_not_theirs():
    few, many = (bottlenecks.limit_of(2**20, workers) for workers in (4, 64))
    assert (few.limit, many.limit) == (WORKERS, LINK)
    report = Report(limits=[few, many])
    assert [table.row_count for table in report.tables()] == [2]
    assert report.as_json()["limits"][1]["workers"] == 64
