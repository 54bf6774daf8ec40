"""The parts of the files of each epoch, in their order, and this shard's share of them."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stoker.collation import Pack
from stoker.plan import Batch, Plan
from stoker.plan.groups import Groups, Share
from stoker.plan.permutation import Positions
from stoker.sources import Seeded
from stoker.sources.chunks import Chunks, Reading
from stoker.workers import Skipped

if TYPE_CHECKING:
    from stoker.sources.files.listing import Listing
    from stoker.sources.files.parts import Part, Parts

log = logging.getLogger("stoker")

_NAMED = 3  # parts of a group in a message


@dataclass(frozen=True)
class Epoch:
    """The parts of the files of one epoch, and which samples of which groups of them are this shard's."""

    number: int
    parts: Parts
    groups: Groups
    shares: list[Share]

    @property
    def files(self) -> str:
        """The fingerprint of all of them."""
        return str(self.parts.listing.fingerprint())

    def parts_at(self, place: int) -> tuple[Part, ...]:
        """Those of the group at that place."""
        return tuple(map(self.parts.__getitem__, self.groups.parts(self.shares[place].group)))

    def seed_at(self, place: int) -> int:
        """For what is random in that group."""
        return self.groups.seed(self.shares[place].group)

    def reading(self, place: int) -> Seeded:
        """What a worker gets for the share at that place."""
        group, start, stop, lead = self.shares[place]
        return Seeded(self.seed_at(place), Reading(self.parts_at(place), self.groups.key(group), start, stop, lead))

    def name(self, place: int) -> str:
        """The parts of that group, in a message."""
        parts = self.parts_at(place)
        names = ", ".join(map(str, parts[:_NAMED]))
        return names + (f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else "")


class Counts(Protocol):
    """Numbers of samples."""

    def of_parts(self, parts: Parts) -> Positions:
        """Of each part."""

    def of_files(self, parts: Parts) -> Positions | None:
        """Of each file, if that can be told without reading any."""


class Epochs:
    """Lists the files, and finds out when they have changed.

    Args:
        chunks: The files.
        plan: Its length is that of the dataset once that is known; of it, batch size, shuffle, seed and shard count.
        cut: Gives the parts of files.
        counts: Gives the numbers of their samples.
        pack: How samples are packed into rows, if they are.
    """

    def __init__(
        self, chunks: Chunks, plan: Plan, cut: Callable[[Listing], Parts], counts: Counts, pack: Pack | None
    ) -> None:
        self.plan, self.pack = plan, pack
        self._chunks, self._cut, self._counts = chunks, cut, counts
        self._listed = self._list()
        self._known: dict[int, Epoch] = {}  # the one that is taken and the one that is prefetched
        self._parts: Parts | None = None  # of the files as they were listed last,
        self._counted: Positions | None = None  # and their samples

    def set_plan(self, plan: Plan) -> None:
        """From now on the shares of another shard; of the files, what is known stays."""
        self.plan, self._known = plan, {}

    def __getitem__(self, number: int) -> Epoch:
        known = self._known  # as it is now: one thread may ask for an epoch while another asks for the next
        epoch = known.get(number)
        if epoch is None:
            epoch = self._new(number)
            self._known = {n: one for n, one in known.items() if abs(n - number) == 1} | {number: epoch}
        return epoch

    def look(self, number: int) -> Callable[[], None] | None:
        """As an epoch begins: lists its files; None, or, if they are others than those that were listed last, what
        takes them on."""
        listing = self._list()
        changes = listing.changes_since(self._listed)
        if changes is None:
            return None
        log.warning("epoch %d: since the files were last listed, %s", number, changes)

        def take_on() -> None:
            nothing: dict[int, Epoch] = {}
            self._listed, self._parts, self._counted, self._known = listing, None, None, nothing

        return take_on

    def count(self, epoch: int) -> int:
        """See ``Places.count``."""
        return len(self[epoch].shares)

    def name(self, epoch: int, place: int) -> str:
        """See ``Places.name``."""
        return self[epoch].name(place)

    def seed(self, epoch: int, place: int) -> int:
        """See ``Places.seed``."""
        return self[epoch].seed_at(place)

    def batch(self, epoch: int, place: int) -> Batch:
        """See ``Places.batch``."""
        return Batch(epoch, place, place + 1, place)

    def lost(self, epoch: int, place: int, skipped: Sequence[Skipped]) -> tuple[Skipped, ...]:
        """See ``Places.lost``: all parts of the group."""
        parts = self[epoch].parts_at(place)
        return tuple(Skipped(part.number, f"{part}: {one.error}", one.traceback) for one in skipped for part in parts)

    def batches(self, number: int) -> int:
        """Batches in that epoch of this shard, if all files can be read."""
        parts, size = self[number].parts, self.plan.batch_size or 1
        counts = self._counts.of_files(parts) if self._counted is None else None
        if counts is None:
            counts = np.zeros(len(parts.listing), np.int64)
            np.add.at(counts, parts.files, self._count(parts))
        if self._chunks.across_chunks:
            return len(self._whole(counts, self.plan))
        full, rest = np.divmod(counts, size)
        return int(full.sum() if self.plan.drop_last else (full + (rest > 0)).sum())

    def _list(self) -> Listing:
        from stoker.sources.files.listing import list_files  # not before it is needed, as it loads a library

        return list_files(self._chunks.files)

    def _new(self, number: int) -> Epoch:
        plan = self.plan
        if self._parts is None:
            self._parts = self._cut(self._listed)
        parts = self._parts
        together = self._chunks.interleave if plan.shuffle else 1  # else there is nothing to mix
        strands = parts.strands, parts.abreast(together)
        groups = Groups(parts.sizes, together, bool(plan.shuffle), plan.seed, number, *strands)
        is_any_size = plan.shuffle or not self._chunks.across_chunks or self.pack is not None
        if plan.shard[1] == 1 and is_any_size:
            return Epoch(number, parts, groups, [Share(group) for group in range(len(groups))])
        counts = self._count(parts)
        if self.pack is not None:  # which cuts rows, and not samples, into batches: an equal share of these
            plan = dataclasses.replace(plan, batch_size=None, drop_last=False, even_shards=False)
        first, count = self._whole(counts, plan).span
        return Epoch(number, parts, groups, list(groups.shares(counts, first, count, plan.batch_size or 1)))

    def _whole(self, counts: Positions, plan: Plan) -> Plan:
        """The plan of all samples in a row, of which each shard has its share."""
        return dataclasses.replace(plan, length=int(counts.sum()))

    def _count(self, parts: Parts) -> Positions:
        if self._counted is None or parts is not self._parts:
            self._counted = self._counts.of_parts(parts)
        return self._counted
