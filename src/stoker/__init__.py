"""Stoker keeps accelerators fed: batches from background workers, in shared memory, uncopied."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from stoker.shadows import shadows_explained as _shadows_explained

if _TYPE_CHECKING:
    from stoker.sources.chunks import Chunks
    from stoker.splitting import split

with _shadows_explained():
    from stoker.batches import collate, convert, fetch, map_leaves
    from stoker.bridges import InFlight
    from stoker.collation import Pack, pad
    from stoker.display import Display
    from stoker.errors import (
        BugError,
        CacheError,
        ChunkError,
        ClosedError,
        CollateError,
        ShippingError,
        StartError,
        StateError,
        StokerError,
        TooManyErrors,
        WorkerDied,
    )
    from stoker.interrupts import put_off
    from stoker.loader import Loader
    from stoker.observe import (
        Culprit,
        Diagnosis,
        Distribution,
        Headspace,
        Processors,
        Setup,
        SlowBatch,
        SlowSample,
        SlowSampleStats,
        Station,
        Stats,
        Trace,
        WhatIf,
        WorkerStats,
        compare_ranks,
        diagnose,
        headspace,
        merge_traces,
    )
    from stoker.observe.page import Watch
    from stoker.plan import Buckets, Weighted
    from stoker.sources import Dataset, Mix, Retry
    from stoker.stores import Cache, Rotation
    from stoker.streams import Stream, stream
    from stoker.version import __version__ as __version__
    from stoker.workers import Auto, Inline, Processes, Ray, Threads, worker_number

__all__ = [
    "Auto",
    "Buckets",
    "BugError",
    "Cache",
    "CacheError",
    "ChunkError",
    "Chunks",
    "ClosedError",
    "CollateError",
    "Culprit",
    "Dataset",
    "Diagnosis",
    "Display",
    "Distribution",
    "Headspace",
    "InFlight",
    "Inline",
    "Loader",
    "Mix",
    "Pack",
    "Processes",
    "Processors",
    "Ray",
    "Retry",
    "Rotation",
    "Setup",
    "ShippingError",
    "SlowBatch",
    "SlowSample",
    "SlowSampleStats",
    "StartError",
    "StateError",
    "Station",
    "Stats",
    "StokerError",
    "Stream",
    "Threads",
    "TooManyErrors",
    "Trace",
    "Watch",
    "Weighted",
    "WhatIf",
    "WorkerDied",
    "WorkerStats",
    "collate",
    "compare_ranks",
    "convert",
    "diagnose",
    "fetch",
    "headspace",
    "map_leaves",
    "merge_traces",
    "pad",
    "put_off",
    "split",
    "stream",
    "worker_number",
]


def __getattr__(name: str) -> _Any:
    """What reads and splits files is imported when it is first used: it is a quarter of what importing Stoker costs."""
    if name not in ("Chunks", "split"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stoker.sources.chunks import Chunks
    from stoker.splitting import split

    globals().update(Chunks=Chunks, split=split)
    return globals()[name]
