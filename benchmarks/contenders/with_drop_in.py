"""Stoker's drop-in for torch's `DataLoader`, given what that is given."""

from __future__ import annotations

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream
from stoker.torch import DataLoader


def open_loader(job: Job) -> Stream:
    return with_torch.open_loader(job, kind=DataLoader)
