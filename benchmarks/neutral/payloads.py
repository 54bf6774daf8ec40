"""What SPDL's own benchmark of its transports moves from a worker to the consumer: big payloads, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from benchmarks.workloads import (
    ONE_COPY,
    SPDL_POOL,
    SPDL_QUEUE,
    SPDL_RING,
    SPDL_SMALL_POOL,
    STREAM_OF_PAYLOADS,
    Workload,
)

Kind = Literal["bytes", "numpy", "torch"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SIZES_MIB = (2, 8, 32)
BUFFERED = 3  # items ready ahead, for everyone
TRANSPORT_CONTENDERS = (STREAM_OF_PAYLOADS, SPDL_SMALL_POOL, SPDL_POOL, SPDL_RING, SPDL_QUEUE, ONE_COPY)

_MIB = 2**20
_PASS_BYTES = 512 * _MIB


@dataclass(frozen=True)
class Payloads:
    """So many zeros in a dict, again and again.

    The same object each time, but for tensors: torch moves a tensor to shared memory when it is first sent, and the
    second time would cost it nothing.
    """

    kind: Kind
    size: int  # bytes
    count: int  # in a pass

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.make(index)

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, range(self.count))

    def make(self, _: int) -> dict[str, Any]:
        return {"data": self._zeros() if self.kind == "torch" else self._kept}

    @cached_property
    def _kept(self) -> Any:
        return self._zeros()

    def _zeros(self) -> Any:
        match self.kind:
            case "bytes":
                return bytes(self.size)
            case "numpy":
                return np.zeros(self.size // 4, np.float32)
            case "torch":
                import torch

                return torch.zeros(self.size // 4)


def _workload(kind: Kind, mib: int) -> Workload:
    size = mib * _MIB
    count = _PASS_BYTES // size

    def make(_: Path) -> Any:
        return Payloads(kind, size, count)

    title = f"{kind}, {mib} MiB"
    name = f"{kind}_{mib}"
    return Workload(name, title, make, 1, count, size, "GB/s", TRANSPORT_CONTENDERS, workers=1, ours=STREAM_OF_PAYLOADS)


TRANSPORTS: dict[str, Workload] = {
    workload.name: workload for workload in (_workload(kind, mib) for kind in KINDS for mib in SIZES_MIB)
}
