"""What a SwiftLoader is told: its arguments, checked, and what those without a counterpart come to."""

from __future__ import annotations

import difflib
import operator
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import stoker
from stoker.compat.arguments import check_callable, check_flag, checked_count
from stoker.compat.swift_loader.log import LogOptions
from stoker.compat.swift_loader.parcel import Decoding, Packing

_COUNTS = ("batch_size", "nb_consumer", "worker_per_consumer", "data_queue_size", "message_queue_size",
           "nearby_shuffle", "max_nb_batch_on_device", "max_buffer_size")  # fmt: skip
_DERIVED = ("nearby_shuffle", "max_buffer_size")  # from other arguments, if they are not given
_FLAGS = ("shuffle", "benchmark", "validate", "multithread")
_CALLABLES = ("dataset_class", "collate_fn", "batch_encoder", "batch_decoder")
_SEEDS = ("seed", "seed_number", "seed_numer")  # the last one is how it is spelt where the others are meant


@dataclass(frozen=True, kw_only=True)
class Options:
    """All arguments of a ``SwiftLoader``. None stands for a default that follows from other arguments."""

    dataset_class: Callable[..., Any]
    dataset_kwargs: Mapping[str, Any]
    batch_size: int
    nb_consumer: int
    worker_per_consumer: int
    shuffle: bool
    seed: int
    data_queue_size: int = 10
    message_queue_size: int = 10
    collate_fn: Callable[[list[Any]], Any] | None = None
    logger: str | Mapping[str, Any] | None = None
    batch_encoder: Callable[[Any], bytes] | None = None
    batch_decoder: Callable[[bytes], Any] | None = None
    nearby_shuffle: int | None = None
    benchmark: bool = True
    benchmark_file: str | os.PathLike[str] | None = None
    validate: bool = True
    multithread: bool = True
    max_nb_batch_on_device: int = 1
    max_buffer_size: int | None = None

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Checks the names, and draws the seed where none is given."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known and name not in _SEEDS:
                nearest = difflib.get_close_matches(name, [*known, *_SEEDS], n=1, cutoff=0.0)[0]
                raise TypeError(f"SwiftLoader has no argument {name!r}: the nearest that it has is {nearest!r}")
        seeds = {name: given.pop(name) for name in _SEEDS if name in given}
        return cls(seed=_seed(seeds), **given)

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) is not None or name not in _DERIVED:
                object.__setattr__(self, name, checked_count(name, getattr(self, name)))
        for name in _FLAGS:
            check_flag(name, getattr(self, name))
        for name in _CALLABLES:
            if getattr(self, name) is not None or name == "dataset_class":
                check_callable(name, getattr(self, name))
        if not isinstance(self.dataset_kwargs, Mapping):
            raise TypeError(f"dataset_kwargs={self.dataset_kwargs!r}: pass a dict of dataset_class's arguments")
        if (self.batch_encoder is None) != (self.batch_decoder is None):
            missing = "batch_encoder" if self.batch_encoder is None else "batch_decoder"
            raise ValueError(f"{missing} is missing: encoder and decoder undo each other, so give both or neither")
        if not isinstance(self.benchmark_file, str | os.PathLike | None):
            raise TypeError(f"benchmark_file={self.benchmark_file!r}: pass the name of a file")
        LogOptions.of(self.logger)

    @property
    def window(self) -> int | bool:
        """``shuffle`` as ``stoker.Loader`` has it."""
        return self.shuffle and (self.nearby_shuffle or 5 * self.batch_size)

    @property
    def prefetch(self) -> int:
        """Batches ahead per worker: the queue, divided among those who fill it."""
        return max(1, self.data_queue_size // self.worker_per_consumer)

    @property
    def writes_figures(self) -> bool:
        """Whether anybody reads them; else nothing need be measured beyond what Stoker measures anyway."""
        log = LogOptions.of(self.logger)
        return self.benchmark and (self.benchmark_file is not None or log.path is not None or log.stdout)

    @property
    def packing(self) -> Packing | None:
        """What makes parcels, where batches travel in them."""
        if self.batch_encoder is None and (self.collate_fn is None or not self.writes_figures):
            return None
        return Packing(self.collate_fn or stoker.collate, self.batch_encoder)

    @property
    def decoding(self) -> Decoding | None:
        return None if self.batch_decoder is None else Decoding(self.batch_decoder)

    def seed_of(self, consumer: int) -> int:
        """One a consumer: with one for all, the same places of all shares would draw the same random numbers."""
        return self.seed * self.nb_consumer + consumer


def _seed(given: Mapping[str, Any]) -> int:
    names = [name for name, value in given.items() if value is not None]
    if not names:
        return int(time.time() * 1000)
    seed = given[names[0]]
    if any(given[name] != seed for name in names):
        words = " and ".join(f"{name}={given[name]!r}" for name in names)
        raise ValueError(f"{words} are one and the same argument: pass seed=... alone")
    if not hasattr(seed, "__index__"):
        raise TypeError(f"seed={seed!r}: pass a whole number")
    return operator.index(seed)
