"""The tuning, over a pipeline that is simulated by arithmetic: it finds a good number of workers, and stays there."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.workers.auto.tuning import Measurement, Tuning

SECONDS = 0.3  # of a period


@dataclass(frozen=True)
class Pipeline:
    """Work that takes so many seconds a batch: on a core, waiting, and in the consumer.

    ``bandwidth``: batches a second that all workers together can make, however many there are. ``crowding``: what each
    worker beyond the cores costs the others. ``unevenness``: so many batches must be ahead of a slow one for each
    worker, or workers idle.
    """

    cores: int
    cpu: float
    wait: float = 0.0
    step: float = 0.0
    bandwidth: float = 1e9
    crowding: float = 0.0
    unevenness: int = 1

    def made(self, workers: int, ahead: int = 1) -> float:
        """Batches a second that workers can make."""
        alone = workers / (self.cpu + self.wait)
        crowd = 1 / (1 + self.crowding * max(0, workers - self.cores))
        on_cores = self.cores / self.cpu * crowd if self.cpu else 1e9
        return min(alone, on_cores, self.bandwidth) * min(1, ahead / self.unevenness)

    def delayed(self, workers: int) -> float:
        """The share of their time that workers wait for a core."""
        return max(0.0, 1 - self.cores * (self.cpu + self.wait) / (workers * self.cpu)) if self.cpu else 0.0

    def rate(self, workers: int, ahead: int = 1) -> float:
        return min(self.made(workers, ahead), 1 / self.step if self.step else 1e9)

    def best(self, most: int, most_ahead: int = 4) -> float:
        return max(self.rate(workers, most_ahead) for workers in range(1, most + 1))

    def period(self, workers: int, ahead: int, noise: float = 1.0, **memory) -> Measurement:
        rate = self.rate(workers, ahead) * noise
        hungry = max(0.0, 1 - self.step * rate) if self.made(workers, ahead) <= 1 / max(self.step, 1e-9) else 0.0
        idles = self.unevenness > ahead
        busy = (
            workers * SECONDS * rate / (self.made(workers, ahead) * noise) * (ahead / self.unevenness if idles else 1)
        )
        return Measurement(
            seconds=SECONDS,
            workers=workers,
            samples=round(1000 * rate * SECONDS),
            cycles=workers * SECONDS,
            busy=busy,
            cpu=rate * SECONDS * self.cpu,
            delayed=self.delayed(workers) * busy,
            waited=hungry * SECONDS,
            starved=hungry * SECONDS * 0.9 if idles else 0.0,
            **memory,
        )


def tuned(pipeline, *, first=None, least=1, most=32, periods=120, noise=0.0, seed=0, **memory):
    """The tuning, and what it said after each period."""
    chance = random.Random(seed)
    first = pipeline.cores if first is None else first
    tuning = Tuning(first=first, least=least, most=most, cores=pipeline.cores, most_ahead=4)
    said = []
    for _ in range(periods):
        tuning.note(pipeline.period(tuning.wanted, tuning.ahead, 1 + chance.uniform(-noise, noise), **memory))
        said.append((tuning.wanted, tuning.ahead))
    return tuning, said


def settled(tuning, said):
    """What it has settled on: what it had longest in the last third."""
    last = said[-len(said) // 3 :]
    return max(set(last), key=last.count)


PIPELINES = st.builds(
    Pipeline,
    cores=st.integers(1, 16),
    cpu=st.floats(0.001, 0.1),
    wait=st.one_of(st.just(0.0), st.floats(0.001, 0.5)),
    step=st.one_of(st.just(0.0), st.floats(0.001, 0.1)),
    bandwidth=st.one_of(st.just(1e9), st.floats(10, 2000)),
    crowding=st.sampled_from([0.0, 0.05]),
    unevenness=st.sampled_from([1, 1, 2, 3]),
)


@given(PIPELINES)
def test_it_comes_within_five_percent_of_the_best_fixed_number(pipeline):
    tuning, said = tuned(pipeline, periods=900)
    assert pipeline.rate(*settled(tuning, said)) >= 0.95 * pipeline.best(32)


@settings(max_examples=30)  # each takes 2000 periods
@given(PIPELINES, st.integers(0, 99))
def test_it_does_not_swing_also_where_measurements_do(pipeline, seed):
    """In the last five of ten minutes, it changes its mind a few times an hour for trials, and undoes those."""
    _, said = tuned(pipeline, periods=2000, noise=0.02, seed=seed)
    later = said[1000:]
    changes = sum(a != b for a, b in itertools.pairwise(later))
    assert changes <= 24


@given(PIPELINES, st.integers(1, 8), st.integers(0, 8), st.integers(0, 99))
def test_it_keeps_within_its_limits(pipeline, least, more, seed):
    most = least + more
    _, said = tuned(pipeline, first=most, least=least, most=most, noise=0.3, seed=seed)
    assert all(least <= workers <= most and 1 <= ahead <= 4 for workers, ahead in said)


def test_work_that_waits_gets_more_workers_than_there_are_cores():
    tuning, said = tuned(Pipeline(cores=2, cpu=0.0005, wait=0.04))
    assert settled(tuning, said)[0] == 32


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_work_of_the_processor_gets_one_worker_for_each_core(cores):
    tuning, said = tuned(Pipeline(cores=cores, cpu=0.01, crowding=0.1), first=1)
    assert settled(tuning, said)[0] == cores


def test_workers_that_the_consumer_does_not_need_are_retired():
    tuning, said = tuned(Pipeline(cores=16, cpu=0.01, step=0.02))
    assert settled(tuning, said)[0] <= 2


def test_workers_that_are_in_each_others_way_are_retired():
    tuning, said = tuned(Pipeline(cores=1, cpu=0.01, crowding=0.5), first=2)
    assert settled(tuning, said)[0] == 1


def test_more_batches_are_ahead_where_workers_idle_while_the_consumer_waits():
    tuning, said = tuned(Pipeline(cores=2, cpu=0.01, unevenness=3))
    assert settled(tuning, said) == (2, 4)


EVEN, UNEVEN = (Pipeline(cores=2, cpu=0.01, step=0.0105, unevenness=needed) for needed in (1, 4))


@pytest.mark.parametrize(
    ("first", "then", "ahead"),
    [
        pytest.param(UNEVEN, EVEN, 1, id="no longer needed"),
        pytest.param(UNEVEN, replace(UNEVEN, unevenness=2), 1, id="half of it is needed, and the consumer is slow"),
        pytest.param(UNEVEN, UNEVEN, 2, id="still needed"),
        pytest.param(UNEVEN, replace(EVEN, step=0.0), 2, id="the consumer waits, so that nothing is spared"),
    ],
)
def test_batches_ahead_that_the_consumer_no_longer_needs_are_given_up(first, then, ahead):
    tuning, said = tuned(first, periods=300)
    assert settled(tuning, said)[1] == 2, "half of what all workers could use: the consumer takes no more"
    after = []
    for _ in range(300):
        tuning.note(then.period(tuning.wanted, tuning.ahead))
        after.append((tuning.wanted, tuning.ahead))
    assert settled(tuning, after)[1] == ahead
    assert then.rate(*settled(tuning, after)) >= 0.95 * then.best(32)


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(0, 99), st.integers(20, 400))
def test_batches_ahead_do_not_swing_where_the_need_comes_and_goes(needed, seed, phase):
    """Each trial that undid what had helped comes after a longer pause: a few in five minutes, however it goes."""
    chance = random.Random(seed)
    tuning = Tuning(first=2, least=1, most=2, cores=2, most_ahead=4)
    said = []
    for number in range(2000):
        now = replace(EVEN, unevenness=needed if number // phase % 2 else 1)
        tuning.note(now.period(tuning.wanted, tuning.ahead, 1 + chance.uniform(-0.02, 0.02)))
        said.append(tuning.ahead)
    changes = sum(a != b for a, b in itertools.pairwise(said[1000:]))
    assert changes <= 24


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline(cores=2, cpu=0.01, crowding=0.1),
        Pipeline(cores=8, cpu=0.01, crowding=0.05),
        Pipeline(cores=2, cpu=0.001, wait=0.05),
    ],
)
def test_what_seems_to_help_by_chance_does_not_lead_astray(pipeline):
    """Measurements swing by a third, as on a busy machine."""
    found = [settled(*tuned(pipeline, noise=0.3, seed=seed, periods=600)) for seed in range(20)]
    assert min(pipeline.rate(*one) for one in found) >= 0.8 * pipeline.best(32)


def test_what_did_not_help_is_tried_again_soon_if_the_work_changes():
    """A minute long, a busy machine has made a second worker useless; then it is quiet."""
    busy, quiet = Pipeline(cores=2, cpu=0.02, bandwidth=20), Pipeline(cores=2, cpu=0.01)
    tuning, _ = tuned(busy, first=1, periods=1000)
    assert tuning.wanted == 1
    for _ in range(40):
        tuning.note(quiet.period(tuning.wanted, tuning.ahead))
    assert tuning.wanted == 2


def test_no_more_workers_than_memory_has_room_for():
    gigabyte = 2**30
    memory = {"memory": 4 * gigabyte, "memory_limit": 8 * gigabyte, "worker_bytes": 2 * gigabyte}
    _, said = tuned(Pipeline(cores=2, cpu=0.0005, wait=0.04), periods=4, **memory)
    assert said[-1] == (3, 1)


def test_one_after_the_other_gives_way_where_memory_is_short():
    memory = {"memory": 2**27, "memory_limit": 8 * 2**30, "worker_bytes": 2**28}
    _, said = tuned(Pipeline(cores=4, cpu=0.01), least=2, periods=5, **memory)
    assert [workers for workers, _ in said] == [3, 2, 2, 2, 2]


def test_what_cannot_be_started_is_not_asked_for_again_at_once():
    pipeline = Pipeline(cores=2, cpu=0.0005, wait=0.04)
    tuning, _ = tuned(pipeline, periods=3)
    assert tuning.wanted == 4
    tuning.refused(3)
    asked = []
    for _ in range(20):
        tuning.note(pipeline.period(tuning.wanted, tuning.ahead))
        asked.append(tuning.wanted)
    assert set(asked) == {2}


def test_a_death_undoes_the_trial_it_came_in():
    tuning, _ = tuned(Pipeline(cores=2, cpu=0.0005, wait=0.04), periods=3)
    assert tuning.is_trying
    tuning.died()
    assert (tuning.wanted, tuning.is_trying) == (2, False)
