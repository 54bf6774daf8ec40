"""Stoker: `Loader` on as many actors as others have processes. Batches are numpy arrays, the consumer's own."""

from __future__ import annotations

import stoker
from benchmarks.contenders import local_ray, with_stoker
from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job) -> Stream:
    local_ray.start(job.workload.workers)
    return with_stoker.open_loader(job, workers=stoker.Ray(job.workload.workers))
