"""Stoker on as many threads as others have processes: objects that are no arrays need not be pickled."""

from __future__ import annotations

import stoker
from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job, count: int | None = None) -> Stream:
    """`count`: so many threads instead."""
    return with_stoker.open_loader(job, workers=stoker.Threads(count or job.workload.workers))
