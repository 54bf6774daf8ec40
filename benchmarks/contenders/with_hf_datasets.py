"""HF `datasets`: an Arrow file, memory-mapped, through torch's `DataLoader`, which asks it for whole batches.

`Array3D` is its type for images that are arrays. Written to the dtype: without it, integers become int64. Asked for
numpy, since its torch format was measured at a third of the speed.
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


def _write(images: Dataset, file: Path) -> None:
    from datasets.arrow_writer import ArrowWriter

    from datasets import Array3D, Features

    features = Features({"image": Array3D(images[0].shape, str(images[0].dtype))})
    with ArrowWriter(path=str(file), features=features, writer_batch_size=100) as writer:
        for index in range(len(images)):
            writer.write({"image": images[index]})
        writer.finalize()


def open_loader(job: Job) -> Stream:
    import datasets

    file = job.scratch / "images.arrow"
    _write(job.dataset, file)
    images: Any = datasets.Dataset.from_file(str(file)).with_format("numpy", dtype=np.uint8)
    return with_torch.open_loader(job, images)
