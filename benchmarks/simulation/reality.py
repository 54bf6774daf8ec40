"""Real loaders beside the simulation of them: the same dataset, which waits, and the same workers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from random import Random
from time import perf_counter

import numpy as np

import stoker
from benchmarks.contenders import local_ray
from benchmarks.simulation.assumptions import HERE, ON_RAY, Assumptions, by_sample
from benchmarks.simulation.scenario import Outcome, Scenario, simulate
from stoker import Processes, Ray, Threads
from stoker.plan import Plan
from stoker.workers import Workers

_BATCH = 4
_SAMPLE_S = 5e-3
_SPREAD = 0.7  # of the logarithm of a sample's time, where that varies
_SECONDS = 3.0  # of each real run
_SLOW_STEP_S = 0.03
_ACTORS = 4


class Waits:
    """Sample i takes ``seconds[i]``, in which nothing is done. It is [i, how many seconds it took indeed]: a sleep on a
    machine that has other things to do is longer than it should be."""

    def __init__(self, seconds: Sequence[float]) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return len(self._seconds)

    def __getitem__(self, index: int) -> np.ndarray:
        began = perf_counter()
        time.sleep(self._seconds[index])
        return np.array([index, perf_counter() - began])


@dataclass(frozen=True)
class Match:
    """Batches a second of a real loader, and of the simulation of it."""

    title: str
    real: float
    simulated: float

    @property
    def difference(self) -> float:
        return self.simulated / self.real - 1


def measure() -> Iterator[Match]:
    """Real runs take three seconds each."""
    for workers in (Threads(1), Threads(4), Threads(8), Processes(2), Processes(4)):
        yield _match(f"{_named(workers)}, 20 ms a batch", workers)
    for workers in (Threads(8), Processes(4)):
        yield _match(f"{_named(workers)}, times vary", workers, spread=_SPREAD)
    yield _match("Threads(4), times vary, in_order=False", Threads(4), spread=_SPREAD, in_order=False)
    yield _match("Threads(4), a step of 30 ms", Threads(4), step_s=_SLOW_STEP_S)
    yield _match("Threads(4), prefetch=1, times vary", Threads(4), spread=_SPREAD, prefetch=1)
    if find_spec("ray") is not None:
        ray = local_ray.start(_ACTORS)
        try:
            yield _match(f"Ray({_ACTORS}), 20 ms a batch", Ray(_ACTORS), assumptions=ON_RAY)
            yield _match(f"Ray({_ACTORS}), times vary", Ray(_ACTORS), spread=_SPREAD, assumptions=ON_RAY)
        finally:
            ray.shutdown()


def _named(workers: Workers) -> str:
    return f"{type(workers).__name__}({workers.count})"


def times_of(samples: int, *, spread: float = 0.0, mean: float = _SAMPLE_S, seed: int = 0) -> list[float]:
    """Seconds for each sample."""
    random = Random(seed)
    return [mean * random.lognormvariate(-spread * spread / 2, spread) for _ in range(samples)]


def simulated(
    workers: Workers,
    plan: Plan,
    seconds: Sequence[float],
    batches: int,
    *,
    step_s: float = 0.0,
    in_order: bool = True,
    prefetch: int = 2,
    assumptions: Assumptions = HERE,
    skip: int = 0,
) -> Outcome:
    """What the simulation makes of a loader over ``Waits(seconds)``."""
    return simulate(
        Scenario(
            [plan],
            by_sample(plan, seconds),
            batches,
            workers,
            step_s=step_s,
            in_order=in_order,
            prefetch=prefetch,
            assumptions=assumptions,
            skip=skip,
        )
    )


def _match(
    title: str,
    workers: Workers,
    *,
    spread: float = 0.0,
    step_s: float = 0.0,
    in_order: bool = True,
    prefetch: int = 2,
    assumptions: Assumptions = HERE,
) -> Match:
    skip = 4 * workers.count
    batches = skip + round(_SECONDS * workers.count / (_BATCH * _SAMPLE_S))
    seconds = times_of(batches * _BATCH, spread=spread)
    loader = stoker.Loader(Waits(seconds), _BATCH, shuffle=True, workers=workers, prefetch=prefetch, in_order=in_order)
    with loader:
        real = _run(loader, skip, step_s)
    plan = Plan(len(seconds), _BATCH, shuffle=True)
    found = simulated(
        workers,
        plan,
        real.seconds,
        len(plan),
        step_s=real.step_s,
        in_order=in_order,
        prefetch=prefetch,
        assumptions=assumptions,
        skip=skip,
    )
    return Match(title, real.batches_per_s, found.batches_per_s)


@dataclass(frozen=True)
class _Run:
    batches_per_s: float
    seconds: list[float]  # that each sample took
    step_s: float


def _run(loader: stoker.Loader, skip: int, step_s: float) -> _Run:
    """One epoch. The first batches, while workers start, are not counted."""
    got, times, stepped = [], [], 0.0
    for batch in loader:
        began = perf_counter()
        times.append(began)
        got.append(batch)
        if step_s:
            time.sleep(step_s)
            stepped += perf_counter() - began
    rows = np.concatenate(got)
    rows = rows[rows[:, 0].argsort()]
    assert rows[:, 0].tolist() == list(range(len(rows)))
    return _Run((len(times) - 1 - skip) / (times[-1] - times[skip]), rows[:, 1].tolist(), stepped / len(times))
