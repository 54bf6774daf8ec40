"""torchdata's `StatefulDataLoader`, given what torch's `DataLoader` is given."""

from __future__ import annotations

from torchdata.stateful_dataloader import StatefulDataLoader

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job) -> Stream:
    return with_torch.open_loader(job, kind=StatefulDataLoader)
