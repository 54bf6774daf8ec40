"""The contenders: one file each, all used as their own documentation recommends.

Each file has `open_loader(job)`, some with options. It is called in a process of its own, so nothing here imports a
peer at the top of this package.
"""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.contenders.contender import PREFETCH, Contender, Job
from benchmarks.workloads import (
    ARROW_DATASET,
    AUTO,
    BARE,
    BARE_BATCHES,
    CACHE,
    CHUNKS,
    CHUNKS_ARROW,
    CHUNKS_SHUFFLED,
    DECODING,
    DROP_IN,
    GRAIN,
    HF_BATCHES,
    HF_DATASETS,
    HF_STREAMING,
    LIMIT,
    LITDATA,
    MANY_PROCESSES,
    MANY_THREADS,
    MEMMAP,
    MEMMAP_ALONE,
    MEMMAP_RING,
    MOSAIC,
    ONE_COPY,
    ONE_PROCESS,
    PACKING_BEST,
    PACKING_FIRST,
    PACKING_STOKER,
    PACKING_TORCH,
    RAY_ACTORS,
    RAY_DATA,
    RAY_DATA_TUNED,
    ROTATION_ALL,
    ROTATION_DISK,
    ROTATION_MEMORY,
    SPDL,
    SPDL_POOL,
    SPDL_PROCESSES,
    SPDL_QUEUE,
    SPDL_RING,
    SPDL_SMALL_POOL,
    STATEFUL,
    STOKER,
    STOKER_ON_RAY,
    STOKER_PROCESSES,
    STOKER_THREADS,
    STREAM,
    STREAM_OF_PAYLOADS,
    SWIFT_FRONT,
    TINYLOADER,
    TINYLOADER_FRONT,
    TINYLOADER_ITEMS,
    TORCH,
    TORCH_FILES,
    TWO_PROCESSES,
    TWO_THREADS,
    WEBDATASET,
)

_TIMES, _ROTATING = 4, 512
_MODULES: dict[str, tuple[str, dict[str, Any]]] = {
    STOKER: ("with_stoker", {}),
    STOKER_THREADS: ("with_stoker_threads", {}),
    SWIFT_FRONT: ("with_swift_front", {}),
    TORCH: ("with_torch", {}),
    STATEFUL: ("with_stateful", {}),
    DROP_IN: ("with_drop_in", {}),
    GRAIN: ("with_grain", {}),
    SPDL: ("with_spdl", {}),
    SPDL_PROCESSES: ("with_spdl_processes", {}),
    TINYLOADER: ("with_tinyloader", {}),
    LIMIT: ("limit", {}),
    DECODING: ("with_stoker", {}),
    CACHE: ("with_cache", {}),
    HF_DATASETS: ("with_hf_datasets", {}),
    LITDATA: ("with_litdata", {}),
    MOSAIC: ("with_mosaic", {}),
    MEMMAP: ("memmap", {"buffers": 1}),
    MEMMAP_RING: ("memmap", {"buffers": PREFETCH + 1}),
    MEMMAP_ALONE: ("memmap", {"buffers": 1, "processes": 1}),
    ROTATION_MEMORY: ("with_rotation", {"times": _TIMES, "size": _ROTATING}),
    ROTATION_ALL: ("with_rotation", {"times": _TIMES}),
    ROTATION_DISK: ("with_rotation", {"times": _TIMES, "size": _ROTATING, "medium": "disk"}),
    STREAM: ("with_stream", {}),
    TINYLOADER_FRONT: ("items_with_tinyloader", {"front": True}),
    TINYLOADER_ITEMS: ("items_with_tinyloader", {"front": False}),
    CHUNKS_SHUFFLED: ("with_chunks", {"shuffle": True}),
    CHUNKS: ("with_chunks", {"shuffle": False}),
    CHUNKS_ARROW: ("with_chunks", {"shuffle": False, "to": "arrow"}),
    BARE: ("bare_files", {"in_batches": False}),
    BARE_BATCHES: ("bare_files", {"in_batches": True}),
    HF_STREAMING: ("streaming_with_hf", {"in_batches": False}),
    HF_BATCHES: ("streaming_with_hf", {"in_batches": True}),
    TORCH_FILES: ("files_with_torch", {}),
    WEBDATASET: ("with_webdataset", {}),
    ARROW_DATASET: ("with_arrow_dataset", {}),
    STOKER_ON_RAY: ("with_stoker_on_ray", {}),
    STOKER_PROCESSES: ("with_stoker", {}),
    RAY_ACTORS: ("ray_actors", {}),
    RAY_DATA: ("with_ray_data", {"tuned": False}),
    RAY_DATA_TUNED: ("with_ray_data", {"tuned": True}),
    STREAM_OF_PAYLOADS: ("payloads_with_stoker", {}),
    ONE_COPY: ("payloads_alone", {}),
    SPDL_QUEUE: ("payloads_with_spdl", {"arena": "none"}),
    SPDL_RING: ("payloads_with_spdl", {"arena": "ring"}),
    SPDL_POOL: ("payloads_with_spdl", {"arena": "pool"}),
    SPDL_SMALL_POOL: ("payloads_with_spdl", {"arena": "small pool"}),
    PACKING_STOKER: ("packing_with_stoker", {}),
    PACKING_FIRST: ("packing_with_grain", {"best": False}),
    PACKING_BEST: ("packing_with_grain", {"best": True}),
    PACKING_TORCH: ("packing_with_torch", {}),
    AUTO: ("with_auto", {}),
    ONE_PROCESS: ("with_stoker", {"workers": 1}),
    TWO_PROCESSES: ("with_stoker", {"workers": 2}),
    MANY_PROCESSES: ("with_stoker", {"workers": 32}),
    TWO_THREADS: ("with_stoker_threads", {"count": 2}),
    MANY_THREADS: ("with_stoker_threads", {"count": 32}),
}

__all__ = ["Contender", "Job", "open_contender"]


def open_contender(name: str, job: Job) -> Contender:
    """Imports the contender and sets it up for the job."""
    module, options = _MODULES[name]
    contender: Contender = importlib.import_module(f"{__name__}.{module}").open_loader(job, **options)
    return contender
