"""What a loader keeps: nothing, all samples for some epochs (cache), or a few for some uses (rotation)."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import Any

from stoker.plan import Batch, Plan
from stoker.stores.cache import Cache
from stoker.stores.rotation import Rotation
from stoker.stores.store import OpenStore
from stoker.systems import IS_LINUX, not_here

log = logging.getLogger("stoker")


@dataclass(frozen=True)
class Keeping:
    """``cache=`` and ``rotation=`` of a loader."""

    cache: Cache | None
    rotation: Rotation | None

    def __post_init__(self) -> None:
        if not isinstance(self.cache, Cache | None):
            raise TypeError(f"cache={self.cache!r}: pass stoker.Cache(path, ...)")
        if not isinstance(self.rotation, Rotation | None):
            raise TypeError(f"rotation={self.rotation!r}: pass stoker.Rotation(times, ...)")
        if self.cache is not None and self.rotation is not None:
            raise ValueError(
                "cache= and rotation= do not go together. If the disk can hold the whole dataset, use the cache, which "
                "makes samples once for several epochs; else use the rotation"
            )
        if not IS_LINUX and not (self.cache is None and self.rotation is None):
            # Whose locks belong to an open file, so that threads exclude each other as processes do.
            raise not_here("cache=" if self.rotation is None else "rotation=", "leave it out")

    @property
    def times(self) -> int:
        """Uses of each sample in an epoch."""
        return 1 if self.rotation is None else self.rotation.times

    @property
    def rotating(self) -> int | None:
        """Samples that rotate at the same time; None: all."""
        return None if self.rotation is None else self.rotation.size

    def opener(self, dataset: Any, ahead: int, usually_ahead: int) -> OpenStore | None:
        """What opens the store in a worker. ``ahead``: batches that may be under way, or ready.

        Raises:
            CacheError: The cache is another dataset's.
        """
        # Each imported when it is asked for: most loaders keep nothing, and importing stoker shall be quick.
        if self.cache is not None:
            from stoker.stores.cache_store import folder_of, open_cache

            folder = folder_of(self.cache, dataset)
            folder.check()
            # If more are, a run that ends may have to make samples again: that is better than to keep them for long.
            return functools.partial(open_cache, self.cache, folder, usually_ahead)
        if self.rotation is not None:
            from stoker.stores.rotation_store import open_rotation

            return functools.partial(open_rotation, ahead)
        return None

    def reopener(self, dataset: Any, ahead: int, usually_ahead: int) -> OpenStore | None:
        """The same, for a dataset that has changed since.

        A cache knows it by the arguments of its constructor, and is refused if one of these has changed. What else has
        changed is not in the samples that are kept already.
        """
        opener = self.opener(dataset, ahead, usually_ahead)
        if self.cache is not None:
            log.warning(
                "The dataset has changed since its samples were put into the cache %s, which stay as they are. Pass "
                "another Cache(version=...) if that matters.",
                self.cache.path,
            )
        return opener

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
