"""Stoker with its `Rotation`, in memory or on disk. An epoch is `times` as long."""

from __future__ import annotations

from typing import Any

import stoker
from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job, times: int, size: int | None = None, medium: Any = "memory") -> Stream:
    path = job.scratch if medium == "disk" else None
    return with_stoker.open_loader(job, rotation=stoker.Rotation(times, medium, size, path))
