"""Stoker with its `Cache`: the first epoch, which fills it, is the warm-up."""

from __future__ import annotations

import stoker
from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job) -> Stream:
    return with_stoker.open_loader(job, cache=stoker.Cache(job.scratch / "cache"))
