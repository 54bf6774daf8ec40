"""What moving a payload takes at least: this process makes each and copies it into warm memory, with no loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contenders.contender import Job
from benchmarks.contenders.passes import Passes
from benchmarks.datasets import Array
from benchmarks.neutral.payloads import BUFFERED, Payloads


def open_loader(job: Job) -> Passes:
    payloads: Payloads = job.dataset  # type: ignore[assignment]
    buffers = [np.ones(payloads.size, np.uint8) for _ in range(BUFFERED + 1)]  # as many as a loader has in flight

    def begin() -> Iterator[Array]:
        for index, payload in enumerate(payloads):
            buffer = buffers[index % len(buffers)]
            np.copyto(buffer, _as_bytes(payload["data"]))
            yield buffer

    return Passes(begin, len(payloads), buffers.clear)


def _as_bytes(payload: Any) -> Array:
    return np.frombuffer(payload if isinstance(payload, bytes) else np.asarray(payload), np.uint8)
