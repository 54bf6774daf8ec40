"""Batches of chunk files: workers read groups of files, and the consumer hands out what they made, one by one.

    files ── list ──> groups ── a worker reads, shuffles and cuts ──> batches ──────────────────> you
                                                                 └──> loose samples ── joined ───┘

A group's last samples, too few for a batch, wait for the next ones; the consumer collates such batches itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stoker.agenda.agenda import Take
from stoker.agenda.chunks.epochs import Counts, Epochs
from stoker.agenda.chunks.opening import AGAIN, Forms, Opening
from stoker.agenda.chunks.state import from_state, to_state
from stoker.agenda.pulling import Pulling
from stoker.engine import Delivery
from stoker.interrupts import Hand
from stoker.plan import Batch, ChunkCursor, Numbering, Plan, Run
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
    """A unit is a group of parts of files, at a place of its epoch. It has many batches.

    Args:
        chunks: The files.
        batches: Batch size, shuffle, seed, ``drop_last`` and shard; its length plays no part.
        collate: The user's own.
        surveyor: Finds the parts of files, and counts their samples.
        files: That are kept open where the consumer reads them itself.
        to_arrow: Makes record batches of the columns, if that is wanted.
        ahead: Find out what comes next not only when the consumer waits for it.
    """

    is_counted = True
    length, longest_run = 0, 1

    def __init__(
        self,
        chunks: Chunks,
        batches: Plan,
        collate: Callable[[list[Any]], Any] | None,
        surveyor: Surveyor,
        files: OpenFiles,
        to_arrow: Callable[[Any], Any] | None,
        *,
        ahead: bool,
    ) -> None:
        self.plan = Numbering(batches.seed)
        self.cursor = ChunkCursor()
        self.epochs = Epochs(chunks, batches, surveyor.parts, surveyor)
        self._chunks, self._batches, self._collate, self._to_arrow = chunks, batches, collate, to_arrow
        self._surveyor, self._files = surveyor, files
        self._forms = Forms()
        self._sought = self.cursor  # where the units begin that are being offered,
        self._next = 0, 0  # and the epoch and place of the one that comes next
        self._pulling = Pulling(ahead=ahead)
        self._begun: int | None = None  # the epoch that was begun last

    @property
    def interrupt(self) -> BaseException | None:
        return self._pulling.interrupt

    @interrupt.setter
    def interrupt(self, error: BaseException | None) -> None:
        self._pulling.interrupt = error

    @property
    def what(self) -> str:
        return "part" if self.epochs[self.epoch].parts.cuts else "file"

    @property
    def epoch(self) -> int:
        return self.cursor.epoch

    @property
    def shard(self) -> tuple[int, int]:
        return self._batches.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        state, before = self.state(self.cursor), self._batches
        self._set_batches(dataclasses.replace(before, shard=shard))
        try:
            self.cursor = self.from_state(state)
        except BaseException:
            self._set_batches(before)
            raise

    def _set_batches(self, plan: Plan) -> None:
        self._batches = plan
        self.epochs.set_plan(plan)

    def set_length(self, length: int) -> None:
        raise NotImplementedError("its samples are counted by surveys")

    def __len__(self) -> int:
        return self.epochs.batches(self.epoch)

    # The engine's side

    def seek(self) -> None:
        self._sought, self._next = self.cursor, (self.cursor.epoch, self.cursor.place)

    def unpacker(self, take: Take, *, whole: bool) -> Opening:
        how = self._batches, self._collate, self._to_arrow
        return Opening(take, self._sought, self.epochs, self._forms, *how, whole=whole)

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        """First those, once more, whose loose samples wait."""
        yield from [Run(AGAIN, place, 1) for place in sorted({place for place, _ in self._sought.waiting})]
        yield from self._pulling.runs(self._offer)

    def payload(self, run: Run) -> Any:
        return self.epochs[self._epoch_of(run)].reading(run.position)

    def batch(self, epoch: int, position: int) -> Batch:
        return Batch(epoch, position, position + 1, position)

    def indices(self, run: Run) -> Sequence[int]:
        return [run.position]

    def name(self, run: Run) -> str:
        return self.epochs[self._epoch_of(run)].name(run.position)

    def _epoch_of(self, run: Run) -> int:
        return self._sought.epoch if run.epoch == AGAIN else run.epoch

    def _offer(self, hand: Hand[Run]) -> None:
        """The next place that is to be read, in this epoch or in one after it: those are prefetched."""
        (epoch, place), sought = self._next, self._sought
        shares = self.epochs[epoch].shares
        while epoch == sought.epoch and place in sought.taken:
            place += 1
        if shares and place >= len(shares):
            epoch, place, shares = epoch + 1, 0, self.epochs[epoch + 1].shares
        if place < len(shares):
            run = Run(epoch, place, 1)
            hand.held, self._next = run, (epoch, place + 1)  # at once

    # The consumer's side

    def at_end(self) -> bool:
        return self._is_over(self.cursor)

    def _is_over(self, cursor: ChunkCursor) -> bool:
        least = (self._batches.batch_size or 1) if self._batches.drop_last else 1  # that a last batch has
        return cursor.is_over(len(self.epochs[cursor.epoch].shares)) and len(cursor.waiting) < least

    def after(self, delivery: Delivery) -> Any:
        return delivery.after if delivery.unit is None else delivery.unit.after(delivery.nth)

    def leave_out(self, count: int) -> ChunkCursor:
        return self.cursor  # what was left out of a group is counted when it has come

    def left_out(self) -> int:
        return self.cursor.left_out

    def all_of(self, batch: Batch) -> Plan:
        return Plan(len(self.epochs[batch.epoch].parts), None)

    def forget(self, delivery: Delivery) -> None:
        pass

    def raise_error(self) -> None:
        self._pulling.raise_error()

    def go_to(self, epoch: int) -> ChunkCursor:
        return ChunkCursor(epoch)

    def recount(self) -> bool:
        return False

    def look(self) -> Callable[[], None] | None:
        epoch, begun = self.epoch, self._begun
        if begun == epoch:
            return None
        take_on = None if begun is None or self.cursor.is_within else self.epochs.look(epoch)
        if take_on is None:
            self._begun = epoch
            return None

        def bring_up_to_date() -> None:
            take_on()
            self._begun = epoch

        return bring_up_to_date

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        if cursor.place and self._is_over(cursor):
            cursor = ChunkCursor(cursor.epoch + 1)
        return to_state(cursor, self._chunks, self._batches, self.epochs[cursor.epoch] if cursor.is_within else None)

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        return from_state(state, self._chunks, self._batches, self.epochs.__getitem__)

    def close(self) -> None:
        self._surveyor.close()
        self._files.close()
