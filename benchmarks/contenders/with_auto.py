"""Stoker with `workers="auto"`, which is given time to find how many workers there should be."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job, Stream

_ENDLESS = 10**9  # batches: the warm-up ends by the clock


def open_loader(job: Job) -> Stream:
    return replace(with_stoker.open_loader(job, workers="auto"), epoch=_ENDLESS)
