"""Stoker's `Mix` of three sources, each of which is the whole dataset, by weight."""

from __future__ import annotations

import stoker
from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job, Stream

WEIGHTS = (0.5, 0.3, 0.2)


def open_loader(job: Job) -> Stream:
    mix = stoker.Mix([job.dataset] * len(WEIGHTS), WEIGHTS, ends="never")
    return with_stoker.open_loader(job, mix)
