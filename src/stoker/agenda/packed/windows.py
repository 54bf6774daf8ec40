"""The windows of an epoch: so many positions of its order each, whose samples are packed together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stoker.collation import Pack
from stoker.plan import Batch, Plan
from stoker.workers import Skipped


class Windows:
    """A window is a batch of a plan, whose batches are as large; it is a unit, and comes at a place of its epoch.

    Args:
        batches: Batch size (in rows), shuffle, seed, ``drop_last``, shard and the dataset's length.
        pack: How samples are packed.
    """

    def __init__(self, batches: Plan, pack: Pack) -> None:
        self.pack = pack
        self.set_batches(batches)

    def set_batches(self, batches: Plan) -> None:
        """From now on those of another shard, or of another length."""
        self.batches = batches
        # No sample is repeated or dropped for the sake of even windows: batches would not be even all the same.
        self.plan = dataclasses.replace(batches, batch_size=self.pack.window, drop_last=False, even_shards=False)

    def count(self, epoch: int) -> int:
        """See ``Places.count``."""
        return self.plan.batch_count(epoch)

    def name(self, epoch: int, place: int) -> str:
        """See ``Places.name``."""
        samples = self.batch(epoch, place)
        return f"window {place} of epoch {epoch} ({samples.stop - samples.start} samples)"

    def seed(self, epoch: int, place: int) -> int:
        """See ``Places.seed``."""
        return self.plan.batch_seed(self.batch(epoch, place))

    def batch(self, epoch: int, place: int) -> Batch:
        """See ``Places.batch``."""
        return self.plan.batch(epoch, place * self.plan.stride)._replace(position=place)

    def lost(self, epoch: int, place: int, skipped: Sequence[Skipped]) -> tuple[Skipped, ...]:
        """See ``Places.lost``: the engine has found out which samples it was."""
        return tuple(skipped)
