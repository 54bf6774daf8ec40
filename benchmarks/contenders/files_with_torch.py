"""torch's `IterableDataset` over the files, which its two workers share, with default collation.

JSON lines with msgspec, which is quicker than `json`; Parquet with pyarrow, whose rows are views of numpy arrays, which
is quicker than `to_pylist`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from benchmarks.contenders import with_torch
from benchmarks.contenders.contender import Job, Stream


class Records(IterableDataset):  # type: ignore[type-arg]
    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker: Any = get_worker_info()
        for file in self.files[worker.id :: worker.num_workers]:
            yield from _rows(file) if file.endswith(".parquet") else _lines(file)


def _lines(path: str) -> Iterator[dict[str, Any]]:
    import msgspec

    decode = msgspec.json.Decoder().decode
    with open(path, "rb") as file:
        yield from map(decode, file)


def _rows(path: str) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches():
            features = batch["features"].flatten().to_numpy().reshape(batch.num_rows, -1)
            numbers = zip(batch["id"].to_pylist(), features, batch["label"].to_pylist(), strict=True)
            yield from ({"id": id, "features": row, "label": label} for id, row, label in numbers)


def open_loader(job: Job) -> Stream:
    return with_torch.open_loader(job, Records(list(job.dataset)), shuffle=False)
