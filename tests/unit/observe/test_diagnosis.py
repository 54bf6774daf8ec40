"""The right culprit is named, on runs that are slow in known ways."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import Culprit, SlowSample, SlowSampleStats, diagnose
from stoker.observe import Meter, Processors
from tests.unit.observe.played import played


def one_in_twenty(number: int) -> float:
    return 400.0 if number % 20 == 10 else 2.0


def busy(cores: int = 2, **others) -> Processors:
    return Processors(cores, **{"consumer_delay": 0.0, "workers_delay": 0.0, "busy_threads": 1.0} | others)


# What is slow, who is to blame, and words of the sentence.
RUNS = {
    "slow dataset, all cores used": (
        {"fetch": 40, "step": 5, "cpu": 1.0, "processors": busy(2)},
        Culprit.DATASET,
        ["Training waited for data 7", "100 % of worker time was dataset[i]", "more workers would not help", "2 cores"],
    ),
    "slow dataset, and nobody can make as many workers": (
        {"fetch": 40, "step": 0, "cpu": 1.0, "workers": 4},
        Culprit.DATASET,
        ["dataset[i]; workers=8, a cheaper dataset[i], or cache"],
    ),
    "too few workers": (
        {"fetch": 40, "step": 15, "cpu": 1.0, "workers": 2},
        Culprit.TOO_FEW_WORKERS,
        ["waited for data 26 %", "a third worker (workers=3) would cut the wait to about 0 %"],
    ),
    "too few by many": (
        {"fetch": 60, "step": 10, "cpu": 1.0},
        Culprit.TOO_FEW_WORKERS,
        ["7 workers (workers=7) would"],
    ),
    "latency": (
        {"fetch": 100, "step": 10, "cpu": 0.02},
        Culprit.LATENCY,
        ["dataset[i], which waited itself", "98 %", "workers=11", "workers=stoker.Threads(11)"],
    ),
    "latency, in threads, and a consumer that takes no time": (
        {"fetch": 100, "step": 0, "cpu": 0.02, "backend": "Threads", "shares_interpreter": True},
        Culprit.LATENCY,
        ["may be more than there are cores, as in workers=stoker.Threads(4)"],
    ),
    "slow collate": (
        {"fetch": 1, "write": 30, "step": 5, "cpu": 1.0, "processors": busy(2)},
        Culprit.COLLATE,
        ["of worker time was collation", "a cheaper collate="],
    ),
    "slow consumer": (
        {"fetch": 10, "step": 20},
        Culprit.CONSUMER,
        ["kept fed", "waited 0 %", "workers=1 would do"],
    ),
    "slow consumer, one worker": (
        {"fetch": 10, "step": 20, "workers": 1},
        Culprit.CONSUMER,
        ["kept fed", "idled 49 %"],
    ),
    "slow consumer, a few long steps": (
        {"fetch": 800, "step": 1000, "workers": 1, "batches": 6},
        Culprit.CONSUMER,
        ["kept fed: it waited 800 ms for its first batch, and then 0 % of the time"],
    ),
    "one worker that is just too slow": (
        {"fetch": 1200, "step": 1000, "workers": 1, "batches": 6, "cpu": 1.0, "processors": busy(1)},
        Culprit.DATASET,
        ["more workers would not help, as there are 1 cores"],
    ),
    "too many workers": (
        {"fetch": 10, "step": 20, "workers": 8},
        Culprit.TOO_MANY_WORKERS,
        ["kept fed", "workers=1 would do"],
    ),
    "more workers than cores": (
        {"fetch": 80, "step": 5, "cpu": 0.25, "workers": 8, "processors": busy(2, workers_cpu=5.0, workers_delay=15.0)},
        Culprit.TOO_MANY_WORKERS,
        ["8 workers shared 2 cores", "workers=2 would be as fast"],
    ),
    "a few slow batches hold up the others": (
        {"fetch": one_in_twenty, "step": 20, "workers": 4},
        Culprit.SLOW_BATCHES,
        [
            "10 of 200 batches took much longer",
            "(2.01 ms)",
            "the slowest 400 ms, at position",
            "in_order=False would cut",
        ],
    ),
    "a few slow batches, one worker": (
        {"fetch": one_in_twenty, "step": 10, "workers": 1},
        Culprit.SLOW_BATCHES,
        ["took much longer"],
    ),
    "one slow batch of twenty": (
        {"fetch": lambda number: 500 if number == 10 else 4, "step": 5, "batches": 20},
        Culprit.SLOW_BATCHES,
        ["1 of 20 batches took much longer", "the slowest 500 ms, at position 40"],
    ),
    "the first batch of a worker is slow": (
        {"fetch": lambda number: 500 if number < 2 else 4, "step": 5, "batches": 60},
        Culprit.CONSUMER,
        ["for its first batch, and then 0 % of the time"],
    ),
    "a few slow batches, whose workers had no core": (
        {
            "fetch": one_in_twenty,
            "step": 0,
            "cpu": 0.2,
            "workers": 1,
            "processors": busy(8, workers_cpu=1.0, workers_delay=4.0),
        },
        Culprit.DATASET,
        ["dataset[i]"],
    ),
    "slow device copy": (
        {"fetch": 2, "step": 10, "move": 40, "on_device": 2},
        Culprit.DEVICE_COPY,
        ["on its way to the device 100 %", "InFlight", "more workers would not"],
    ),
    "a device copy that ends each wait, while workers take longer": (
        {"fetch": 40, "step": 4, "move": 15, "on_device": 2, "cpu": 0.02},
        Culprit.TOO_FEW_WORKERS,
        ["dataset[i]; a third worker (workers=3) would cut the wait to about 73 %"],
    ),
    "to= that ends each wait, while workers take longer": (
        {"fetch": 40, "step": 4, "move": 12, "cpu": 1.0, "processors": busy(2)},
        Culprit.DATASET,
        ["dataset[i]", "more workers would not help"],
    ),
    "a few batches that are slow to collate": (
        {"fetch": 1, "write": one_in_twenty, "step": 20, "workers": 4},
        Culprit.SLOW_BATCHES,
        ["10 of 200 batches took much longer", "(2.01 ms)", "in_order=False would cut"],
    ),
    "a device copy that is quick, and a slow dataset": (
        {"fetch": 100, "step": 10, "move": 5, "on_device": 2, "cpu": 1.0, "processors": busy(2)},
        Culprit.DATASET,
        ["dataset[i]"],
    ),
    "slow to=": ({"fetch": 2, "step": 5, "move": 20}, Culprit.CONVERSION, ["100 % of that was to=", "to_device="]),
    "threads in workers": (
        {"fetch": 40, "step": 5, "cpu": 1.0, "processors": busy(2, busy_threads=4.0)},
        Culprit.THREADS_IN_WORKERS,
        ["2 workers computed with 4 threads each, on 2 cores", "init=", "OMP_NUM_THREADS=1"],
    ),
    "threads in workers, by their processor time alone": (
        {"fetch": 40, "step": 5, "cpu": 3.0, "processors": Processors(cores=4)},
        Culprit.THREADS_IN_WORKERS,
        ["2 workers computed with 3 threads each, on 4 cores"],
    ),
    "cold cache": (
        {"fetch": 40, "step": 5, "has_cache": True},
        Culprit.COLD_CACHE,
        ["the cache lacked 100 %", "the next epochs find them there"],
    ),
    "a cache that was cold in the first of many epochs": (
        {"fetch": lambda k: 40 if k < 15 else 0.2, "calls": lambda k: 4 * (k < 15), "step": 3, "has_cache": True},
        Culprit.COLD_CACHE,
        ["the cache lacked 8 %", "the next epochs find them there"],
    ),
    "cold cache, no workers": (
        {"fetch": 40, "step": 5, "has_cache": True, "workers": 0},
        Culprit.COLD_CACHE,
        ["made its batches itself, 89 %", "100 % of that work was dataset[i]: the cache lacked 100 %"],
    ),
    "warm cache": (
        {"fetch": 40, "step": 5, "has_cache": True, "calls": 0, "cpu": 1.0, "workers": 6},
        Culprit.TOO_FEW_WORKERS,
        ["dataset[i]"],
    ),
    "starved consumer": (
        {
            "fetch": 20,
            "step": 20,
            "cpu": 0.9,
            "processors": busy(2, consumer_delay=1.5, workers_cpu=4.0, workers_delay=4.0),
        },
        Culprit.STARVED_CONSUMER,
        ["for a core to run on 37 %", "2 workers wanted", "workers=1 leaves a core to it"],
    ),
    "another program takes the cores": (
        {"fetch": 10, "step": 20, "cpu": 0.01, "processors": busy(2, consumer_delay=1.5)},
        Culprit.CONSUMER,
        ["kept fed"],
    ),
    "interpreter lock": (
        {
            "fetch": 40,
            "step": 1,
            "cpu": 0.5,
            "backend": "Threads",
            "shares_interpreter": True,
            "processors": busy(4),
        },
        Culprit.INTERPRETER_LOCK,
        ["2 threads computed on 1.0 cores", "workers=2"],
    ),
    "transfer": ({"fetch": 1, "step": 5, "transfer": 40, "is_here": False}, Culprit.TRANSFER, ["faster network"]),
    "prefetch of one": (
        {"fetch": 3, "step": 0, "handover": 10, "prefetch": 1, "workers": 2},
        Culprit.HAND_OVER,
        ["workers idled", "prefetch=2"],
    ),
    "items that come slowly": (
        {"fetch": 3, "step": 0, "handover": 20, "pulls": True, "making": "work(item)"},
        Culprit.HAND_OVER,
        ["workers idled", "items that come more quickly"],
    ),
    "tiny batches": (
        {"fetch": 0.001, "write": 0.001, "opening": 0.05, "step": 0.05},
        Culprit.HAND_OVER,
        ["taking over batches that were ready", "bigger batches"],
    ),
    "no workers": (
        {"fetch": 30, "step": 10, "workers": 0},
        Culprit.NO_WORKERS,
        ["made its batches itself, 75 %", "dataset[i]", "workers=4 would cut that to about 0 %"],
    ),
    "no workers, and a consumer that takes no time": (
        {"fetch": 30, "step": 0, "workers": 0, "batches": 5, "processors": busy(2)},
        Culprit.NO_WORKERS,
        ["; pass workers=2"],
    ),
    "no workers, and a slow consumer": ({"fetch": 0.1, "step": 30, "workers": 0}, Culprit.CONSUMER, ["itself, 1 %"]),
    "no workers, slow to=": ({"fetch": 1, "step": 5, "move": 30, "workers": 0}, Culprit.CONVERSION, ["to="]),
    "all batches were made ahead": (
        {"fetch": 0.1, "batches": 3, "processors": busy(2, consumer_delay=1.0, workers_cpu=1.0, workers_delay=9.0)},
        Culprit.UNKNOWN,
        ["Too few batches to tell", ": 3 in"],
    ),
    "start-up": (
        {"fetch": 1, "batches": 10, "starting": 900},
        Culprit.START_UP,
        ["Most of the time was start-up, 0.9 of 0.9", "warm_up()"],
    ),
    "start-up, and then a slow dataset": (
        {"fetch": 40, "step": 5, "cpu": 1.0, "starting": 2000, "processors": busy(2)},
        Culprit.DATASET,
        ["dataset[i]", "Start-up took 2 s more"],
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_the_right_culprit_is_named(run):
    durations, culprit, words = RUNS[run]
    found = diagnose(played(**durations))
    assert found.culprit == culprit, found.sentence
    assert [word for word in words if word not in found.sentence] == [], found.sentence


def test_what_there_is_to_say_where_nothing_was_measured():
    assert diagnose(Meter(2).stats()).sentence == "Nothing was delivered yet."
    assert diagnose(replace(played(fetch=5), stations={})).sentence == "Nothing was measured: observe=False."


def test_slots_that_were_never_used_are_told():
    found = diagnose(played(fetch=40, step=15, prefetch=5, slots=6))
    assert "4 of 10 slots were never used" in found.sentence
    assert "slots" not in diagnose(played(fetch=40, step=15, slots=6)).sentence


def test_arguments_are_told_by_the_names_that_the_front_has():
    found = diagnose(played(fetch=40, step=15, cpu=1.0, workers_argument="num_workers", making="dataset[i]"))
    assert "num_workers=3" in found.remedy
    threads = diagnose(played(fetch=40, step=15, backend="Threads", shares_interpreter=True))
    assert [what.change for what in threads.what_if] == ["workers=stoker.Threads(3)"]
    chosen = diagnose(played(fetch=40, step=15, cpu=1.0, backend="Auto"))
    assert [what.change for what in chosen.what_if] == ["workers=3"]


def test_a_model_that_does_not_give_what_was_measured_is_not_told():
    found = diagnose(played(fetch=40, step=15, handover=200, cpu=1.0))
    assert found.what_if == ()


def test_batches_that_are_made_together_are_counted_one_by_one():
    bundles = played(fetch=lambda k: 300 if k % 4 == 2 else 1, step=20, batches=60, workers=4)
    found = diagnose(replace(bundles, batches=4 * bundles.batches))
    assert found.culprit == Culprit.SLOW_BATCHES, found.sentence
    assert "15 of 240 batches took much longer" in found.sentence
    assert diagnose(bundles).culprit != Culprit.SLOW_BATCHES


def test_slow_samples_are_named_where_most_batches_have_one():
    stats = played(fetch=lambda k: (1, 200, 200, 400)[k % 4], step=20)
    slow = SlowSampleStats(200, 39.0, (SlowSample(index=17, seconds=0.2),))
    found = diagnose(replace(stats, samples=12800, slow_samples=slow))
    assert found.culprit == Culprit.SLOW_SAMPLES, found.sentence
    assert "200 of 12800 samples that took much longer than the others: the slowest, sample 17, 20" in found.sentence
    assert "workers=" in found.remedy
    many = replace(stats, samples=800, slow_samples=slow)  # then slow is what samples are
    assert diagnose(many).culprit == Culprit.LATENCY


def test_the_sample_that_makes_a_batch_slow_is_named():
    stats = played(fetch=one_in_twenty, step=20, workers=4)
    slow = SlowSampleStats(10, 3.9, (SlowSample(index=761, seconds=0.39),))
    assert "; sample 761 alone took 390 ms" in diagnose(replace(stats, slow_samples=slow)).sentence


def test_what_the_consumer_does_after_its_last_batch_is_not_held_against_workers():
    starving = {"fetch": 20, "step": 20, "cpu": 0.9}
    waits = {"consumer_delay": 1.5, "workers_cpu": 4.0, "workers_delay": 4.0}
    assert diagnose(played(**starving, processors=busy(2, **waits))).culprit == Culprit.STARVED_CONSUMER
    later = diagnose(played(**starving, processors=busy(2, **waits, seconds=60.0)))
    assert later.culprit == Culprit.CONSUMER, later.sentence


def test_workers_on_other_machines_are_not_held_against_the_cores_of_this_one():
    computing = {"fetch": 40, "step": 5, "cpu": 3.0, "workers": 6, "processors": busy(2, busy_threads=3.0)}
    found = diagnose(played(**computing, backend="Ray", is_here=False))
    assert found.culprit == Culprit.TOO_FEW_WORKERS, found.sentence
    assert "workers=stoker.Ray(" in found.sentence


DURATIONS = st.one_of(st.just(0.0), st.floats(0.001, 500), st.just(one_in_twenty))


@given(
    st.fixed_dictionaries(
        {
            "fetch": DURATIONS,
            "write": DURATIONS,
            "step": DURATIONS,
            "move": st.sampled_from([0.0, 1.0, 50.0]),
            "transfer": st.sampled_from([0.0, 20.0]),
            "opening": st.sampled_from([0.0, 0.01, 5.0]),
            "workers": st.integers(0, 5),
            "batches": st.sampled_from([1, 2, 7, 60]),
            "cpu": st.sampled_from([0.0, 0.3, 1.0, 4.0]),
            "calls": st.integers(0, 4),
            "starting": st.sampled_from([0.0, 700.0]),
            "slots": st.integers(0, 30),
            "prefetch": st.integers(1, 6),
            "in_order": st.booleans(),
            "on_device": st.sampled_from([0, 2]),
            "has_cache": st.booleans(),
            "is_here": st.booleans(),
            "shares_interpreter": st.booleans(),
            "backend": st.sampled_from(["Processes", "Threads", "Ray"]),
        }
    ),
    st.sampled_from(
        [Processors(), busy(1), busy(4, consumer_delay=3.0, workers_cpu=1.0, workers_delay=30.0, busy_threads=4.0)]
    ),
)
def test_there_is_something_to_say_of_any_run(durations, processors):
    stats = played(**durations, processors=processors)
    found = diagnose(stats)
    assert found.sentence.endswith(".")
    assert ". ." not in found.sentence
    assert found.remedy in found.sentence
    assert 0 <= found.wait <= 1
    assert all(0 <= what.wait <= 1 and "=" in what.change for what in found.what_if)
    assert found.station in ("", *stats.stations)
    json.dumps(stats.to_dict())
    assert stats.to_text()


def test_a_diagnosis_can_be_json():
    found = diagnose(played(fetch=40, step=15, cpu=1.0))
    as_json = json.loads(json.dumps(asdict(found)))
    assert as_json["culprit"] == "too few workers"
    assert as_json["what_if"][0]["change"] == "workers=3"
    assert as_json["what_if"][0]["wait"] < 0.05 < as_json["wait"]
