"""Parcels: how a batch travels that is encoded, or whose ``collate_fn`` is to be timed.

What was measured in the worker is beside the batch. All other batches travel as they are.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

import stoker


class Parcel(NamedTuple):
    """A batch, the process that made it, and the nanoseconds that it took there."""

    batch: Any
    pid: int
    collating: int
    encoding: int


@dataclass(frozen=True)
class Packing:
    """In a worker: samples -> parcel, the batch being the bytes of ``encode``, if there is one."""

    collate: Callable[[list[Any]], Any]
    encode: Callable[[Any], bytes] | None

    def __call__(self, samples: list[Any]) -> Parcel:
        begin = perf_counter_ns()
        batch = self.collate(samples)
        collated = perf_counter_ns()
        if self.encode is not None:
            batch = self._encoded(batch)
        return Parcel(batch, os.getpid(), collated - begin, perf_counter_ns() - collated)

    def _encoded(self, batch: Any) -> Any:
        assert self.encode is not None
        encoded = self.encode(batch)
        if not isinstance(encoded, bytes):
            raise TypeError(f"batch_encoder returned a {type(encoded).__name__}: it must return bytes")
        return np.frombuffer(encoded, np.uint8)  # into the slot as it is: bytes would be pickled first


@dataclass(frozen=True)
class Decoding:
    """In the consumer: the parcel with its bytes decoded."""

    decode: Callable[[bytes], Any]

    def __call__(self, parcel: Parcel) -> Parcel:
        return parcel._replace(batch=self.decode(parcel.batch.tobytes()))


def within(to_device: Callable[..., Any]) -> Callable[..., Any]:
    """``to_device`` for what is in a parcel. Takes as many arguments as ``to_device`` does, which Stoker looks at."""

    @functools.wraps(to_device, updated=())
    def moved(parcel: Parcel, *device: Any) -> Any:
        batch = to_device(parcel.batch, *device)
        if isinstance(batch, stoker.InFlight):
            return stoker.InFlight(parcel._replace(batch=batch.batch), batch.finish)
        return parcel._replace(batch=batch)

    return moved


def to_torch(batch: Any, device: Any) -> Any:
    """Moves arrays and tensors to a torch device, however nested: for decoded batches, which may hold anything."""
    return stoker.convert(batch, to="torch", device=device)
