"""Workers on Ray: races in which each contender has a Ray of its own on this machine, with as many logical CPUs."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.comparisons import Comparison, Row
from benchmarks.workloads import (
    RAY_ACTORS,
    RAY_DATA,
    RAY_DATA_TUNED,
    STOKER_ON_RAY,
    STOKER_PROCESSES,
    WORKLOADS,
    Workload,
)

_CONTENDERS = (STOKER_ON_RAY, STOKER_PROCESSES, RAY_ACTORS, RAY_DATA, RAY_DATA_TUNED)
_OF_RAY_DATA = 5.0
_WARM_UP_S = 25.0  # Ray Data begins slowly


def _on_ray(name: str) -> Workload:
    without = {"least_of_torch": None, "least_of_limit": None}
    return replace(WORKLOADS[name], name=f"ray_{name}", contenders=_CONTENDERS, ours=STOKER_ON_RAY, **without)


RAY_WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in map(_on_ray, ("big", "small"))}


def _comparison(workload: Workload, of_actors: float) -> Comparison:
    def row(contender: str, about: str, least: float | None = None) -> Row:
        return Row(contender, about, STOKER_ON_RAY, contender, least)

    return Comparison(
        workload,
        f"On Ray, {workload.title}, in order, 2 logical CPUs",
        "Stoker on Ray, against it",
        (
            row(STOKER_ON_RAY, "2 actors; batches are the consumer's own"),
            row(STOKER_PROCESSES, "2 worker processes, no Ray"),
            row(RAY_ACTORS, "2 actors, a batch a call, two calls in flight; read-only, in the object store", of_actors),
            row(RAY_DATA, "range, map_batches with that batch size, iter_batches for each epoch", _OF_RAY_DATA),
            row(RAY_DATA_TUNED, "a generator over whole blocks of the range, a thousand epochs in one execution"),
        ),
        length=1.0,
        warm_up=_WARM_UP_S,
        shuffle=False,
        pauses=True,  # Ray Data's own thread takes a third of a core while nobody asks it for anything
    )


RAY_COMPARISONS: dict[str, Comparison] = {
    "ray_big": _comparison(RAY_WORKLOADS["ray_big"], 0.8),
    "ray_small": _comparison(RAY_WORKLOADS["ray_small"], 2.0),
}
