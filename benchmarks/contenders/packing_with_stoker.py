"""Stoker: `Loader(..., pack=Pack(2048))`, else as always."""

from __future__ import annotations

import stoker
from benchmarks.contenders import with_stoker
from benchmarks.contenders.contender import Job
from benchmarks.contenders.packed_stream import ROW, PackedStream

_AHEAD = 400  # batches: two workers have up to eight windows ready or under way, of 40 or 50 batches each


def open_loader(job: Job) -> PackedStream:
    stream = with_stoker.open_loader(job, job.dataset, pack=stoker.Pack(ROW))
    stream.lead_in = _AHEAD
    return PackedStream(stream, "segment_ids")
