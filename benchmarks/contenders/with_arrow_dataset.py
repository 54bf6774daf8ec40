"""pyarrow's own `dataset.to_batches`: record batches that threads of this process read, where others have workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.contenders.contender import Job, Stream


def open_loader(job: Job) -> Stream:
    import pyarrow
    import pyarrow.dataset

    workload = job.workload
    pyarrow.set_cpu_count(workload.workers)
    kind = "parquet" if job.dataset[0].endswith(".parquet") else "json"
    files = pyarrow.dataset.dataset(list(job.dataset), format=kind)

    def epochs() -> Iterator[Any]:
        while True:
            yield from files.to_batches(batch_size=workload.batch_size)

    return Stream(epochs(), workload.batches, lambda: None)
