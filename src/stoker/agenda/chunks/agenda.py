"""Batches of chunk files: workers read groups of files, and the consumer hands out what they made, one by one.

    files ── list ──> groups ── a worker reads, shuffles and cuts ──> batches ──────────────────> you
                                                                 └──> loose samples ── joined ───┘

A group's last samples, too few for a batch, wait for the next ones; the consumer collates such batches itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from stoker.agenda.agenda import ROWS_UNCOUNTED
from stoker.agenda.chunks.epochs import Counts, Epochs
from stoker.agenda.chunks.groups import ChunkGroups
from stoker.agenda.chunks.units import ChunkUnits
from stoker.agenda.grouped_progress import GroupedProgress
from stoker.collation import Pack
from stoker.plan import Numbering, Plan
from stoker.sources.chunks import Chunks
from stoker.sources.files.open_files import OpenFiles

if TYPE_CHECKING:
    from stoker.sources.files.listing import Listing
    from stoker.sources.files.parts import Parts


class Surveyor(Counts, Protocol):
    """Finds out what must be known of files before an epoch."""

    def parts(self, listing: Listing) -> Parts:
        """Into which they are cut."""

    def close(self) -> None:
        """Ends what it has begun."""


class ChunkAgenda:
    """The groups of chunk files, epoch after epoch.

    Args:
        chunks: The files.
        batches: Batch size, shuffle, seed, ``drop_last`` and shard; its length plays no part.
        collate: The user's own.
        surveyor: Finds the parts of files, and counts their samples.
        files: That are kept open where the consumer reads them itself.
        to_arrow: Makes record batches of the columns, if that is wanted.
        pack: How samples are packed into rows, if they are.
        ahead: Find out what comes next not only when the consumer waits for it.
    """

    is_counted = True

    def __init__(
        self,
        chunks: Chunks,
        batches: Plan,
        collate: Callable[[list[Any]], Any] | None,
        surveyor: Surveyor,
        files: OpenFiles,
        to_arrow: Callable[[Any], Any] | None,
        pack: Pack | None,
        *,
        ahead: bool,
    ) -> None:
        self.plan = Numbering(batches.seed)
        self.epochs = Epochs(chunks, batches, surveyor.parts, surveyor, pack)
        self.units = ChunkUnits(self.epochs, collate, to_arrow, ahead=ahead)
        self.progress = GroupedProgress(ChunkGroups(chunks, self.epochs))
        self._surveyor, self._files = surveyor, files
        self._begun: int | None = None  # the epoch that was begun last

    @property
    def shard(self) -> tuple[int, int]:
        return self.epochs.plan.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        self.progress.go_on_as(shard, self.epochs.plan, self.epochs.set_plan)

    def set_length(self, length: int) -> None:
        raise NotImplementedError("its samples are counted by surveys")

    def __len__(self) -> int:
        if self.epochs.pack is not None:
            raise TypeError(ROWS_UNCOUNTED)
        return self.epochs.batches(self.progress.epoch)

    def seek(self) -> None:
        self.units.seek(self.progress.cursor)

    def recount(self) -> bool:
        return False

    def look(self) -> Callable[[], None] | None:
        epoch, begun = self.progress.epoch, self._begun
        if begun == epoch:
            return None
        take_on = None if begun is None or self.progress.cursor.is_within else self.epochs.look(epoch)
        if take_on is None:
            self._begun = epoch
            return None

        def bring_up_to_date() -> None:
            take_on()
            self._begun = epoch

        return bring_up_to_date

    def close(self) -> None:
        self._surveyor.close()
        self._files.close()
