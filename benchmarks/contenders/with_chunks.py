"""Stoker: `Loader(Chunks(folder), ...)` on two process workers."""

from __future__ import annotations

from pathlib import Path

import stoker
from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job, shuffle: bool, to: str | None = None) -> Stream:
    folder = Path(job.dataset[0]).parent
    return with_stoker.open_loader(job, stoker.Chunks(folder), shuffle=shuffle, to=to)
