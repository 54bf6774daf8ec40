"""The workloads: what is loaded, how it is counted, who takes part, and what Stoker is held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.datasets import TOKENS_FILE, Dataset, Gather, Jpegs, Photos, Pool, Tokens, Waiting

STOKER, TORCH, GRAIN, SPDL, TINYLOADER, LIMIT = "Stoker", "torch", "Grain", "SPDL", "tinyloader", "limit"
SWIFT_FRONT = "SwiftLoader's front"  # held against Stoker itself, among the single figures
LOADERS = (STOKER, TORCH, GRAIN, SPDL, TINYLOADER)
CONTENDERS = (*LOADERS, LIMIT)
SPDL_PROCESSES, STOKER_THREADS = "SPDL, processes", "Stoker, threads"
FORM_CONTENDERS = (STOKER, STOKER_THREADS, TORCH, GRAIN, SPDL, SPDL_PROCESSES, LIMIT)
DROP_IN, STATEFUL = "stoker.torch", "StatefulDataLoader"  # given the same arguments as torch's DataLoader
DROP_IN_CONTENDERS = (DROP_IN, TORCH, STATEFUL)

# Where samples are kept.
DECODING, CACHE = "Stoker, decoding", "Stoker's Cache"
HF_DATASETS, LITDATA, MOSAIC = "HF datasets", "LitData", "Mosaic Streaming"
MEMMAP_ALONE = "no loader"
MEMMAP, MEMMAP_RING = "limit: one batch", "limit: batches in flight"
ROTATION_MEMORY, ROTATION_ALL, ROTATION_DISK = "in memory, 512", "in memory, all", "on disk, 512"

# Items, and chunk files.
STREAM, TINYLOADER_FRONT, TINYLOADER_ITEMS = "stoker.stream", "tinyloader's front", "tinyloader, shared memory"
CHUNKS_SHUFFLED, CHUNKS, CHUNKS_ARROW = "Stoker, shuffled", "Stoker, in order", "Stoker, to Arrow"
BARE, BARE_BATCHES = "bare", "bare, in batches"
HF_STREAMING, HF_BATCHES = "HF streaming", "HF streaming, in batches"
TORCH_FILES, WEBDATASET, ARROW_DATASET = "torch's IterableDataset", "webdataset", "pyarrow's dataset"

# On a Ray cluster, and beside it.
STOKER_ON_RAY, STOKER_PROCESSES = "Stoker on Ray", "Stoker, processes"
RAY_ACTORS, RAY_DATA, RAY_DATA_TUNED = "bare Ray actors", "Ray Data", "Ray Data, tuned"

# Mixtures of sources.
STOKER_MIX, GRAIN_MIX = "Stoker's Mix", "Grain's mix"
HF_INTERLEAVED, TORCHDATA_WEIGHTED = "HF interleave_datasets", "torchdata's weighted sampler"

# In SPDL's own benchmark of its transports.
SPDL_QUEUE, SPDL_RING, SPDL_POOL = "SPDL, queue", "SPDL, ring", "SPDL, pool"
SPDL_SMALL_POOL, STREAM_OF_PAYLOADS, ONE_COPY = "SPDL, small pool", "Stoker, stream", "no loader, one copy"

# The number of workers that is found while they work, beside numbers that are given.
AUTO, ONE_PROCESS, TWO_PROCESSES, MANY_PROCESSES = '"auto"', "1 process", "2 processes", "32 processes"
TWO_THREADS, MANY_THREADS = "2 threads", "32 threads"

# Sequences that are packed into rows.
PACKING_STOKER, PACKING_FIRST, PACKING_BEST = "Stoker, packing", "Grain, first fit", "Grain, best fit"
PACKING_TORCH = "torch's IterableDataset, packing"

CHUNK_FOLDER = "chunks"  # in the scratch folder
_ENDLESS = 10**9  # batches: their warm-up ends by the clock

_TOKEN_BYTES = 4

Unit = Literal["GB/s", "samples/s", "batches/s", "tokens/s"]


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    Attributes:
        name: What `--only` calls it.
        title: What a reader sees.
        make: Makes the dataset, given the scratch folder of the run.
        batches: Batches in an epoch.
        batch_bytes: Size of one collated batch.
        shuffle: Load in a shuffled order even where the run does not.
        threads: Load with that many threads instead of two processes.
        ideal: Samples a second that no loader can pass; stands in for a measured limit.
        ours: The contender that is held against others.
        through: What a framework makes of a loader before it is iterated, where there is one.
        least_of_torch: Stoker is to be at least this many times as fast as torch.
        least_of_limit: Stoker is to reach at least this part of the limit.
        least_of_stateful: The drop-in is to be at least this many times as fast as torchdata's.
    """

    name: str
    title: str
    make: Callable[[Path], Dataset]
    batch_size: int
    batches: int
    batch_bytes: int
    unit: Unit
    contenders: tuple[str, ...]
    workers: int = 2
    shuffle: bool = False
    threads: int = 0
    ideal: float | None = None
    ours: str = STOKER
    through: Callable[[Any], Any] | None = None
    least_of_torch: float | None = None
    least_of_limit: float | None = None
    least_of_stateful: float | None = None

    @property
    def units_per_batch(self) -> float:
        """How much of the workload's unit one batch is."""
        if self.unit == "GB/s":
            return self.batch_bytes / 1e9
        if self.unit == "tokens/s":
            return self.batch_bytes / _TOKEN_BYTES
        return float(self.batch_size) if self.unit == "samples/s" else 1.0


def _big(_: Path) -> Dataset:
    return Pool(64 * 100, (3, 224, 224), "float32", pool=64)


def _small(_: Path) -> Dataset:
    return Pool(256 * 1000, (1024,), "uint8", pool=8192)


def _tokens(scratch: Path) -> Dataset:
    return Tokens(32 * 1000, scratch / TOKENS_FILE)


def _gather(_: Path) -> Dataset:
    return Gather(256 * 500, 256)


def _one(_: Path) -> Dataset:
    return Pool(5000, (1024,), "uint8", pool=5000)


def _decode(_: Path) -> Dataset:
    return Jpegs(32 * 40)


def kept(_: Path | None = None) -> Dataset:
    """The images that a cache keeps: 600 MB once they are decoded."""
    return Jpegs(32 * 125, distinct=256)


def photos(_: Path | None = None) -> Dataset:
    return Photos(32 * 40)


def _items(_: Path) -> Dataset:
    return Pool(10**6, (3, 512, 512), "float64", pool=16)


def _files(scratch: Path) -> Any:
    """The paths of the files that `chunk_files.py` has written."""
    return sorted(map(str, (scratch / CHUNK_FOLDER).iterdir()))


def _waiting(_: Path) -> Dataset:
    return Waiting(8 * 800, seconds=0.005)


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("big", "64 × (3,224,224) float32", _big, 64, 100, 64 * 3 * 224 * 224 * 4, "GB/s",
                 CONTENDERS, least_of_torch=6.0, least_of_limit=0.95),
        Workload("small", "256 × 1 KB", _small, 256, 1000, 256 * 1024, "samples/s",
                 CONTENDERS, least_of_torch=12.0, least_of_limit=0.7),
        Workload("tokens", "32 × 2048 int32, memmap", _tokens, 32, 1000, 32 * 2048 * 4, "samples/s",
                 CONTENDERS, least_of_torch=3.0, least_of_limit=0.7),
        Workload("gather", "256 × 1 KB, __getitems__", _gather, 256, 500, 256 * 1024, "samples/s",
                 LOADERS, least_of_torch=3.0),
        Workload("one", "one by one, 1 KB", _one, 1, 5000, 1024, "batches/s",
                 LOADERS, least_of_torch=4.0),
        Workload("decode", "32 JPEGs with Pillow", _decode, 32, 40, 32 * 224 * 224 * 3, "samples/s",
                 CONTENDERS, least_of_torch=1.0, least_of_limit=0.97),
        # Eight a batch: a batch waits 40 ms in one thread, short beside a round, so its end cuts off little.
        Workload("waiting", "5 ms of sleep, 32 threads", _waiting, 8, 800, 8 * 1024, "samples/s",
                 (STOKER, GRAIN, SPDL), threads=32, ideal=32 / 0.005, least_of_limit=0.95),
    )
}  # fmt: skip

# Loaded by comparisons.py, always shuffled.
KEPT: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("cache", "32 decoded JPEGs, kept", kept, 32, 125, 32 * 224 * 224 * 3, "samples/s",
                 (DECODING, CACHE, HF_DATASETS, LITDATA, MOSAIC, MEMMAP_ALONE, MEMMAP, MEMMAP_RING)),
        Workload("rotation", "32 JPEGs with Pillow, used 4 times", _decode, 32, 40, 32 * 224 * 224 * 3, "samples/s",
                 (DECODING, ROTATION_MEMORY, ROTATION_ALL, ROTATION_DISK)),
        Workload("photos", "32 photos with Pillow, used 4 times", photos, 32, 40, 32 * 224 * 224 * 3, "samples/s",
                 (DECODING, ROTATION_MEMORY, ROTATION_DISK)),
    )
}  # fmt: skip

_FILE_CONTENDERS = (
    CHUNKS_SHUFFLED,
    CHUNKS,
    CHUNKS_ARROW,
    BARE,
    BARE_BATCHES,
    HF_STREAMING,
    HF_BATCHES,
    TORCH_FILES,
    ARROW_DATASET,
)

# Loaded by chunk_comparisons.py. An epoch of a gigabyte takes long, and what a batch weighs depends on its texts.
STREAMED: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("items", "one by one, (3,512,512) float64 and a label", _items, 1, _ENDLESS, 3 * 512 * 512 * 8 + 8,
                 "samples/s", (STREAM, TINYLOADER_FRONT, TINYLOADER_ITEMS), workers=8),
        Workload("jsonl", "64 JSON lines", _files, 64, _ENDLESS, 64 * 670, "samples/s",
                 _FILE_CONTENDERS),
        Workload("parquet", "64 rows of Parquet", _files, 64, _ENDLESS, 64 * (64 * 4 + 16), "samples/s",
                 _FILE_CONTENDERS),
        Workload("tar", "32 JPEGs out of tars", _files, 32, _ENDLESS, 32 * 256 * 256 * 3, "samples/s",
                 (CHUNKS, BARE, WEBDATASET)),
    )
}  # fmt: skip

ALL = WORKLOADS | KEPT | STREAMED
