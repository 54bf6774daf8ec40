"""SPDL: payloads out of a pipeline in a subprocess, over its queue or one of its shared-memory arenas."""

from __future__ import annotations

from typing import Any, Literal

from spdl.pipeline import (
    PipelineBuilder,
    SharedMemoryRingBuffer,
    SharedMemorySegmentPool,
    run_pipeline_in_subprocess,
)

from benchmarks.contenders.contender import Job
from benchmarks.contenders.passes import Passes
from benchmarks.neutral.payloads import BUFFERED, Payloads

Arena = Literal["none", "ring", "pool", "small pool"]
_SPARE = 2  # segments beside those that are buffered or held
_HEADROOM = 2  # an arena has room for so many times the payloads


def open_loader(job: Job, arena: Arena) -> Passes:
    payloads: Payloads = job.dataset  # type: ignore[assignment]
    config = PipelineBuilder().add_source(payloads).add_sink(buffer_size=BUFFERED).get_config()
    opened = _open_arena(arena, payloads)
    source = [run_pipeline_in_subprocess(config, num_threads=1, buffer_size=BUFFERED, arena=opened)]
    return Passes(lambda: source[0], len(payloads), source.clear)


def _open_arena(arena: Arena, payloads: Payloads) -> Any:
    """As big as SPDL's benchmark makes it, which is a whole pass; the small pool as its documentation advises."""
    segment, whole = payloads.size * _HEADROOM, len(payloads) + _SPARE
    match arena:
        case "none":
            return None
        case "ring":
            return SharedMemoryRingBuffer(capacity=segment * whole)
        case "pool":
            return SharedMemorySegmentPool(segment_size=segment, count=whole)
        case "small pool":
            return SharedMemorySegmentPool(segment_size=segment, count=BUFFERED + 1 + _SPARE)
