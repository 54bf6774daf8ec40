"""Runs of a loader that never were: durations go in, and figures come out, without any worker or clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

from stoker import Stats
from stoker.engine import Delivery, Usage
from stoker.observe import Meter, Processors, Setup
from stoker.plan import Batch
from stoker.workers import Made, Timing

Duration = float | Callable[[int], float]  # in milliseconds; of the nth batch


def played(
    *,
    fetch: Duration = 0.0,
    write: Duration = 0.1,
    step: Duration = 0.0,
    move: float = 0.0,
    transfer: float = 0.0,
    opening: float = 0.01,
    handover: float = 0.0,
    workers: int = 2,
    batches: int = 200,
    cpu: float = 0.0,
    calls: int | Callable[[int], int] = 4,
    starting: float = 0.0,
    slots: int = 0,
    processors: Processors | None = None,
    **setup: object,
) -> Stats:
    """Times are in milliseconds. ``cpu``: of a worker, as a share of its busy time. ``handover``: until a request has
    reached a worker that has nothing to do."""
    told = Setup(**{"prefetch": 2, **setup})  # type: ignore[arg-type]
    clock = SimpleNamespace(now=10**9)
    with patch("stoker.observe.meter.perf_counter_ns", lambda: round(clock.now)):
        meter = Meter(workers, setup=told)
        free = [clock.now + starting * 1e6] * max(workers, 1)
        made = [_at(fetch, number) + _at(write, number) for number in range(batches)]
        taken_at = [clock.now] * (workers * told.prefetch)  # when the credit for each batch came
        moved = clock.now  # when the conveyor had moved the last one
        for number in range(batches):
            meter.ask()
            asked = clock.now
            if not workers:
                free, taken_at = [asked], [*taken_at, asked]
            worker = min(range(len(free)), key=free.__getitem__)
            credit = taken_at[number]
            began = max(free[worker], credit + handover * 1e6)
            fetched = began + _at(fetch, number) * 1e6
            written = began + made[number] * 1e6
            here = written + transfer * 1e6
            timing = Timing(*map(round, (min(free[worker], began), began, fetched, written, here)))
            free[worker] = written
            if told.on_device:
                moved = max(here, moved) + move * 1e6
                arrived, clock.now = moved, max(asked, moved)
            else:
                arrived = max(asked, here)
                moved = clock.now = arrived + move * 1e6
            told_calls = calls(number) if callable(calls) else calls
            done = Made(SimpleNamespace(nbytes=8), 4, (), (), timing, told_calls, round(cpu * made[number] * 1e6))
            batch = Batch(0, 4 * number, 4 * number + 4, 4 * number)
            waited = round(max(arrived - asked, 0))
            delivery = Delivery(batch, None, done, worker=worker, waited=waited, samples=4, moving=round(move * 1e6))
            delivery.moved = round(moved) if move else 0
            clock.now += opening * 1e6
            taken_at.append(clock.now)
            meter.delivered(delivery, done, 4)
            clock.now += _at(step, number) * 1e6
        figures = meter.stats(Usage(slots=slots, filled=slots))
    return replace(figures, processors=processors or Processors(cores=8))


def _at(duration: Duration, number: int) -> float:
    return duration(number) if callable(duration) else duration
