"""HF `datasets`: an Arrow file, memory-mapped, through torch's `DataLoader`, which asks it for whole batches.

An image is a list of so many uint8, whose shape is a view away: its `Array3D` was measured to take 2.3 times the disk
and 1.4 times the CPU, and its torch format 1.2 times that of its numpy one. Without the dtype, integers become int64.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream
from benchmarks.datasets import Dataset

os.environ["HF_HUB_OFFLINE"] = "1"  # read when it is imported


def write(images: Dataset, file: Path) -> None:
    """As an Arrow file, a row each."""
    from datasets.arrow_writer import ArrowWriter

    from datasets import Features, List, Value

    features = Features({"image": List(Value(str(images[0].dtype)), length=images[0].size)})
    with ArrowWriter(path=str(file), features=features, writer_batch_size=100) as writer:
        for index in range(len(images)):
            writer.write({"image": images[index].reshape(-1)})
        writer.finalize()


def open_loader(job: Job) -> Stream:
    import datasets

    file = job.scratch / "images.arrow"
    write(job.dataset, file)
    images: Any = datasets.Dataset.from_file(str(file)).with_format("numpy", dtype=np.uint8)
    return with_torch.open_loader(job, images)
