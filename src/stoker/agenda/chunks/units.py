"""Groups of parts of files, as the engine asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stoker.agenda.agenda import Take
from stoker.agenda.chunks.epochs import Epochs
from stoker.agenda.chunks.opening import Forms, Opening
from stoker.agenda.pulling import Pulling
from stoker.engine import Delivery
from stoker.interrupts import Hand
from stoker.plan import Batch, ChunkCursor, Run, again


class ChunkUnits:
    """A unit is a group of parts of files, at a place of its epoch. It has many batches.

    Args:
        epochs: All there are.
        collate: The user's own.
        to_arrow: Makes record batches of the columns, if that is wanted.
        ahead: Find out what comes next not only when the consumer waits for it.
    """

    length, longest_run = 0, 1

    def __init__(
        self,
        epochs: Epochs,
        collate: Callable[[list[Any]], Any] | None,
        to_arrow: Callable[[Any], Any] | None,
        *,
        ahead: bool,
    ) -> None:
        self._epochs, self._collate, self._to_arrow = epochs, collate, to_arrow
        self._forms = Forms()
        self._sought = ChunkCursor()  # where the units begin that are being offered,
        self._next = 0, 0  # and the epoch and place of the one that comes next
        self._pulling = Pulling(ahead=ahead)

    @property
    def interrupt(self) -> BaseException | None:
        return self._pulling.interrupt

    @interrupt.setter
    def interrupt(self, error: BaseException | None) -> None:
        self._pulling.interrupt = error

    def seek(self, cursor: ChunkCursor) -> None:
        """See ``Agenda.seek``."""
        self._sought, self._next = cursor, (cursor.epoch, cursor.place)

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        """First those, once more, whose loose samples wait."""
        epoch = again(self._sought.epoch)
        yield from [Run(epoch, place, 1) for place in sorted({place for place, _ in self._sought.waiting})]
        yield from self._pulling.runs(self._offer)

    def payload(self, run: Run) -> Any:
        return self._epochs[_epoch_of(run)].reading(run.position)

    def batch(self, epoch: int, position: int) -> Batch:
        return Batch(epoch, position, position + 1, position)

    def indices(self, run: Run) -> Sequence[int]:
        return [run.position]

    def name(self, run: Run) -> str:
        return self._epochs.name(_epoch_of(run), run.position)

    def unpacker(self, take: Take, *, whole: bool) -> Opening:
        epochs = self._epochs
        how = epochs.plan, self._collate, self._to_arrow
        return Opening(take, self._sought, epochs, self._forms, *how, whole=whole)

    def forget(self, delivery: Delivery) -> None:
        pass

    def raise_error(self) -> None:
        self._pulling.raise_error()

    def _offer(self, hand: Hand[Run]) -> None:
        """The next place that is to be read, in this epoch or in one after it: those are prefetched."""
        (epoch, place), sought = self._next, self._sought
        shares = self._epochs[epoch].shares
        while epoch == sought.epoch and place in sought.taken:
            place += 1
        if shares and place >= len(shares):
            epoch, place, shares = epoch + 1, 0, self._epochs[epoch + 1].shares
        if place < len(shares):
            run = Run(epoch, place, 1)
            hand.held, self._next = run, (epoch, place + 1)  # at once


def _epoch_of(run: Run) -> int:
    return again(run.epoch) if run.epoch < 0 else run.epoch
