"""HF `datasets`, streaming, through torch's `DataLoader`, whose two workers share the files.

As documented: samples in torch's format, collated by torch. In batches: its own `batch(64)`, in numpy's format, which
the `DataLoader` hands over as they are. That is the quickest that gives arrays: it was measured to be 4 times as fast
as the same with torch's default conversion to tensors, and 10 times as fast as samples.
"""

from __future__ import annotations

import os
from typing import Any

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream

os.environ["HF_HUB_OFFLINE"] = "1"  # read when it is imported


def _same(batch: Any) -> Any:
    return batch


def open_loader(job: Job, in_batches: bool) -> Stream:
    import datasets

    kind = "parquet" if job.dataset[0].endswith(".parquet") else "json"
    files: Any = datasets.load_dataset(
        kind, data_files=list(job.dataset), split="train", streaming=True, cache_dir=str(job.scratch / "hf")
    )
    if not in_batches:
        return with_torch.open_loader(job, files.with_format("torch"), shuffle=False)
    batches = files.with_format("numpy").batch(job.workload.batch_size)
    return with_torch.open_loader(job, batches, shuffle=False, batch_size=None, collate_fn=_same)
