"""What a loader keeps: nothing, all samples for some epochs (cache), or a few for some uses (rotation)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from stoker.plan import Batch, Plan
from stoker.stores.cache import Cache
from stoker.stores.rotation import Rotation
from stoker.stores.store import OpenStore


@dataclass(frozen=True)
class Keeping:
    """``cache=`` and ``rotation=`` of a loader."""

    cache: Cache | None
    rotation: Rotation | None

    def __post_init__(self) -> None:
        if not isinstance(self.cache, Cache | None):
            raise TypeError(f"cache={self.cache!r}: write stoker.Cache(path, ...)")
        if not isinstance(self.rotation, Rotation | None):
            raise TypeError(f"rotation={self.rotation!r}: write stoker.Rotation(times, ...)")
        if self.cache is not None and self.rotation is not None:
            raise ValueError(
                "cache= and rotation= are two ways to the same end, and do not go together. Where the disk holds the "
                "whole dataset, use the cache, which spares making a sample for whole epochs; else the rotation"
            )

    @property
    def times(self) -> int:
        """Uses of each sample in an epoch."""
        return 1 if self.rotation is None else self.rotation.times

    @property
    def rotating(self) -> int | None:
        """Samples that rotate at the same time; None: all."""
        return None if self.rotation is None else self.rotation.size

    def opener(self, dataset: Any, ahead: int) -> OpenStore | None:
        """What opens the store in a worker. ``ahead``: batches that may be under way, or ready.

        Raises:
            CacheError: The cache is another dataset's.
        """
        # Each imported when it is asked for: most loaders keep nothing, and importing stoker shall be quick.
        if self.cache is not None:
            from stoker.stores.cache_store import folder_of, open_cache

            folder = folder_of(self.cache, dataset)
            folder.check()
            return functools.partial(open_cache, self.cache, folder, ahead)
        if self.rotation is not None:
            from stoker.stores.rotation_store import open_rotation

            return functools.partial(open_rotation, ahead)
        return None

    def new_file(self) -> int | None:
        """A descriptor of a file for the store, where it needs one: the caller's to close."""
        return None if self.rotation is None else self.rotation.new_file()

    def seed(self, plan: Plan, batch: Batch, index: int) -> int:
        """What random numbers are seeded with before that sample of the batch is made."""
        if self.cache is not None:
            return self.cache.seed(plan.seed, batch.epoch, index)
        if self.rotation is not None:
            return self.rotation.seed(plan.seed, batch.epoch, index)
        return plan.batch_seed(batch)
