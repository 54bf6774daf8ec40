"""Stoker keeps accelerators fed: batches from background workers, in shared memory, uncopied."""

from stoker.shadows import shadows_explained as _shadows_explained

with _shadows_explained():
    from stoker.batches import collate, convert, fetch, map_leaves
    from stoker.bridges import InFlight
    from stoker.collation import pad
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
    from stoker.loader import Loader
    from stoker.observe import Stats, WorkerStats
    from stoker.sources.chunks import Chunks
    from stoker.splitting import split
    from stoker.stores import Cache, Rotation
    from stoker.streams import Stream, stream
    from stoker.workers import Inline, Processes, Threads, worker_number

__version__ = "0.1.0"

__all__ = [
    "BugError",
    "Cache",
    "CacheError",
    "ChunkError",
    "Chunks",
    "ClosedError",
    "CollateError",
    "InFlight",
    "Inline",
    "Loader",
    "Processes",
    "Rotation",
    "ShippingError",
    "StartError",
    "StateError",
    "Stats",
    "StokerError",
    "Stream",
    "Threads",
    "TooManyErrors",
    "WorkerDied",
    "WorkerStats",
    "collate",
    "convert",
    "fetch",
    "map_leaves",
    "pad",
    "split",
    "stream",
    "worker_number",
]
