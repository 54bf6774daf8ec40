"""The files of each epoch, in their order, and this shard's share of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.plan import Plan
from stoker.plan.groups import Groups, Part
from stoker.plan.permutation import Positions
from stoker.sources import Seeded
from stoker.sources.chunks import Chunks, Reading
from stoker.sources.files.opening import shown

if TYPE_CHECKING:
    from stoker.sources.files.listing import Listing

log = logging.getLogger("stoker")

_NAMED = 3  # files of a group in a message


@dataclass(frozen=True)
class Epoch:
    """The files of one epoch, and which samples of which groups of them are this shard's."""

    number: int
    listing: Listing
    groups: Groups
    parts: list[Part]

    def item(self, place: int) -> Seeded:
        """What a worker gets for the part at that place."""
        group, start, stop, lead = self.parts[place]
        files = tuple((number, self.listing[number]) for number in self.groups.files(group))
        reading = Reading(files, self.groups.key(group), start, stop, lead)
        names = ", ".join(shown(path) for _, path in files[:_NAMED])
        more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        return Seeded(self.groups.seed(group), reading, names + more)


class Epochs:
    """Lists the files, and finds out when they have changed.

    Args:
        chunks: The files.
        plan: Its length is that of the dataset once that is known; of it, batch size, shuffle, seed and shard count.
        count: Gives the number of samples of each path.
    """

    def __init__(self, chunks: Chunks, plan: Plan, count: Callable[[Iterator[str]], Positions]) -> None:
        self._chunks, self._plan, self._count = chunks, plan, count
        self._listed = self._list()
        self._known: dict[int, Epoch] = {}  # the one that is taken and the one that is prefetched
        self._counted: tuple[str, Positions] | None = None

    def __getitem__(self, number: int) -> Epoch:
        if number not in self._known:
            self._known = {n: epoch for n, epoch in self._known.items() if abs(n - number) == 1}
            self._known[number] = self._new(number)
        return self._known[number]

    def have_changed(self, number: int) -> bool:
        """As an epoch begins: whether its files are others than those that were listed last. Lists them anew."""
        listing = self._list()
        changes = listing.changes_since(self._listed)
        if changes is None:
            return False
        log.warning("epoch %d: since the files were last listed, %s", number, changes)
        self._listed = listing
        self._known.clear()
        return True

    def batches(self, number: int) -> int:
        """Batches in that epoch of this shard, if all files can be read."""
        epoch, size = self[number], self._plan.batch_size or 1
        counts = self._counts(epoch.listing)
        if self._chunks.across_chunks:
            return self._whole(counts).rounds
        full, rest = np.divmod(counts, size)
        return int(full.sum() if self._plan.drop_last else (full + (rest > 0)).sum())

    def _list(self) -> Listing:
        from stoker.sources.files.listing import list_files  # not before it is needed, as it loads a library

        return list_files(self._chunks.files)

    def _new(self, number: int) -> Epoch:
        listing, plan = self._listed, self._plan
        together = self._chunks.interleave if plan.shuffle else 1  # else there is nothing to mix
        groups = Groups(listing.sizes, together, bool(plan.shuffle), plan.seed, number)
        if plan.shard[1] == 1 and (plan.shuffle or not self._chunks.across_chunks):
            return Epoch(number, listing, groups, [Part(group) for group in range(len(groups))])
        counts = self._counts(listing)
        first, count = self._whole(counts).span
        return Epoch(number, listing, groups, list(groups.parts(counts, first, count, plan.batch_size or 1)))

    def _whole(self, counts: Positions) -> Plan:
        """The plan of all samples in a row, of which each shard has its share."""
        plan = self._plan
        return Plan(int(counts.sum()), plan.batch_size, drop_last=plan.drop_last, shard=plan.shard)

    def _counts(self, listing: Listing) -> Positions:
        files = listing.fingerprint()
        if self._counted is None or self._counted[0] != files:
            self._counted = files, self._count(listing[number] for number in range(len(listing)))
        return self._counted[1]
