"""`workers="auto"` beside numbers of workers that are given: it is to be at most 5 % slower than the best of them."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.comparisons import Comparison, Row
from benchmarks.datasets import write_tokens
from benchmarks.workloads import (
    AUTO,
    MANY_PROCESSES,
    MANY_THREADS,
    ONE_PROCESS,
    TWO_PROCESSES,
    TWO_THREADS,
    WORKLOADS,
    Workload,
)

_LEAST = 0.95
_WARM_UP_S = 12.0  # from 2 to 32 workers takes a few seconds
_FIXED = (ONE_PROCESS, TWO_PROCESSES, TWO_THREADS)  # for two cores
_FIXED_THAT_WAIT = (TWO_PROCESSES, MANY_PROCESSES, MANY_THREADS)


def _workload(original: Workload) -> Workload:
    fixed = _FIXED_THAT_WAIT if original.threads else _FIXED
    without = {"least_of_torch": None, "least_of_limit": None}
    return replace(original, name=f"auto_{original.name}", contenders=(AUTO, *fixed), ours=AUTO, **without)


AUTO_WORKLOADS: dict[str, Workload] = {one.name: one for one in map(_workload, WORKLOADS.values())}


def _comparison(workload: Workload) -> Comparison:
    return Comparison(
        workload,
        f'workers="auto", {workload.title}',
        '"auto", against it',
        tuple(Row(one, "", AUTO, one, None if one == AUTO else _LEAST) for one in workload.contenders),
        prepare=lambda scratch, _: write_tokens(scratch),
        warm_up=_WARM_UP_S,
        shuffle=False,
    )


AUTO_COMPARISONS: dict[str, Comparison] = {name: _comparison(one) for name, one in AUTO_WORKLOADS.items()}
