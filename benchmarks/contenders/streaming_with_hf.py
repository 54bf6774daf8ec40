"""HF `datasets`, streaming, through torch's `DataLoader`, whose two workers share the files.

Sample by sample, torch collates: JSON in no format, since default collation makes tensors of its numbers anyway, and
torch's format took three times as long; Parquet in numpy's, without which features would be lists. In batches: its own
`batch(64)`, in numpy's format, which the `DataLoader` hands over as they are; converted to tensors, as it does unless
told otherwise, that took four times as long. In no format batches are quicker still, by a quarter to a half, but are
lists of numbers and no arrays. All of this was tried once, for 3 s each, on a machine that was not quiet.
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
        samples = files.with_format("numpy") if kind == "parquet" else files
        return with_torch.open_loader(job, samples, shuffle=False)
    batches = files.with_format("numpy").batch(job.workload.batch_size)
    return with_torch.open_loader(job, batches, shuffle=False, batch_size=None, collate_fn=_same)
