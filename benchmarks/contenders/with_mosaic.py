"""Mosaic's Streaming: MDS shards of 64 MB, its default, in a local folder, through torch's `DataLoader`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream
from benchmarks.datasets import Dataset

# Its datasets of well-known names, which import torchvision, whose wheel does not load beside torch's CPU build.
# Nothing of it is used here.
sys.modules["streaming.vision"] = ModuleType("streaming.vision")


def _write(images: Dataset, folder: Path) -> None:
    from streaming import MDSWriter

    first = images[0]
    kind = f"ndarray:{first.dtype}:{','.join(map(str, first.shape))}"
    with MDSWriter(out=str(folder), columns={"image": kind}) as writer:
        for index in range(len(images)):
            writer.write({"image": images[index]})


def open_loader(job: Job) -> Stream:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    folder = job.scratch / "mds"
    _write(job.dataset, folder)
    images: Any = StreamingDataset(local=str(folder), shuffle=job.shuffle, batch_size=job.workload.batch_size)
    stream = with_torch.open_loader(job, images, shuffle=False)  # it shuffles by itself
    stream.closer = clean_stale_shared_memory
    return stream
