"""HF `datasets`: `interleave_datasets` of memory-mapped Arrow files, through torch's `DataLoader`.

It draws the source of each sample in advance and keeps their indices, so the sources are as long as the pool of
distinct samples, and not the workload.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream
from benchmarks.contenders.with_hf_datasets import write
from benchmarks.contenders.with_mix import WEIGHTS


def open_loader(job: Job) -> Stream:
    import datasets

    file = job.scratch / "rows.arrow"
    write(job.dataset.rows, file)  # type: ignore[attr-defined]
    sources: list[Any] = [datasets.Dataset.from_file(str(file)) for _ in WEIGHTS]
    mixed: Any = datasets.interleave_datasets(sources, list(WEIGHTS), seed=0, stopping_strategy="all_exhausted")
    return with_torch.open_loader(job, mixed.with_format("numpy", dtype=np.uint8))
