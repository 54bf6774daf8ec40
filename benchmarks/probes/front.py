"""Seconds a batch through SwiftLoader's front and natively: both warm in one process, measured in turn."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from benchmarks.contenders import Contender, Job, open_contender
from benchmarks.workloads import STOKER, SWIFT_FRONT, WORKLOADS

_ROUNDS, _SECONDS, _WARM_UP_S = 15, 0.2, 5.0


def measure(workload: str) -> dict[str, float]:
    chosen = WORKLOADS[workload]
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
        job = Job(chosen, chosen.make(Path(scratch)), shuffle=False, scratch=Path(scratch))
        contenders = [open_contender(name, job) for name in (STOKER, SWIFT_FRONT)]
        for contender in contenders:
            contender.warm_up(_WARM_UP_S)
        rounds = [_round(*contenders, swapped=turn % 2 == 1) for turn in range(_ROUNDS)]
        for contender in contenders:
            contender.close()
    native, front = (median(column) for column in zip(*rounds, strict=True))
    return {"native": native, "front": front, "ratio": median(ours / theirs for theirs, ours in rounds)}


def _round(native: Contender, front: Contender, *, swapped: bool) -> tuple[float, float]:
    if swapped:
        ours = _seconds_a_batch(front)
        return _seconds_a_batch(native), ours
    return _seconds_a_batch(native), _seconds_a_batch(front)


def _seconds_a_batch(contender: Contender) -> float:
    count = contender.run(_SECONDS)
    return count.seconds / count.batches
