"""`stoker.stream` over payloads: one worker, which stays from pass to pass."""

from __future__ import annotations

from typing import Any

import stoker
from benchmarks.contenders.contender import Job
from benchmarks.contenders.passes import Passes
from benchmarks.neutral.payloads import BUFFERED, Payloads


def open_loader(job: Job) -> Passes:
    payloads: Payloads = job.dataset  # type: ignore[assignment]
    workers = stoker.Processes(job.workload.workers)
    results = stoker.stream(payloads.make, (), workers=workers, prefetch=BUFFERED, keep_workers=True)

    def begin() -> Any:
        results.restart(range(len(payloads)))
        return results

    return Passes(begin, len(payloads), results.close)
