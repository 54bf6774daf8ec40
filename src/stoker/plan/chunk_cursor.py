"""The cursor among chunk files: how far the consumer has got in the groups of an epoch."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


def again(epoch: int) -> int:
    """In place of an epoch: its units that are made once more, before all others, for loose samples that wait.

    It is its own inverse, and negative for each epoch that there is.
    """
    return ~epoch


class ChunkCursor(NamedTuple):
    """What has been delivered of groups of files, which is the whole checkpoint. A value: each step gives a new one.

    A group is read as a whole, and comes at a place of the epoch. It has loose samples before its first batch, batches,
    and loose samples after the last one. Loose samples wait, in the order in which groups came, and are joined to
    batches.

    Attributes:
        epoch: The epoch being delivered.
        place: The place before which all groups are done with.
        taken: Places after `place` that are done with already, out of order, rising.
        partly: Places that were begun and are not done with, rising, and how many batches of each were delivered.
        waiting: Loose samples that wait for others: the place of each, and which of the loose ones there it is.
        left_out: Parts of files of this epoch that could not be read.
    """

    epoch: int = 0
    place: int = 0
    taken: tuple[int, ...] = ()
    partly: tuple[tuple[int, int], ...] = ()
    waiting: tuple[tuple[int, int], ...] = ()
    left_out: int = 0

    @property
    def is_within(self) -> bool:
        """Whether something of the epoch was taken, so that it must go on with the same files and shards."""
        return bool(self.place or self.taken or self.partly or self.waiting)

    @property
    def begun(self) -> int:
        """The place after the last group that something was taken of."""
        return max([self.place, *(place + 1 for place in self.taken), *(place + 1 for place, _ in self.partly)])

    def is_over(self, places: int) -> bool:
        """Whether all groups of an epoch with so many places are done with; loose samples may still wait."""
        return self.place >= places

    def handed(self, place: int) -> int | None:
        """How many batches of the group there were delivered; None if it was not begun."""
        return dict(self.partly).get(place)

    def remaining(self, places: int) -> Iterator[int]:
        """The places of the groups that are still to come, in an epoch with so many."""
        taken = frozenset(self.taken)
        return (place for place in range(self.place, places) if place not in taken)

    def begin(self, place: int, loose: int, left_out: int = 0) -> "ChunkCursor":
        """The group there has come, with so many loose samples before its first batch, and some parts left out.

        If it was begun before, these are counted already.
        """
        if self.handed(place) is not None:
            return self
        waiting = (*self.waiting, *((place, nth) for nth in range(loose)))
        partly = tuple(sorted((*self.partly, (place, 0))))
        return self._replace(partly=partly, waiting=waiting, left_out=self.left_out + left_out)

    def hand_out(self, place: int, batches: int) -> "ChunkCursor":
        """So many batches of the group there were delivered, in all."""
        return self._replace(partly=tuple((one, batches if one == place else n) for one, n in self.partly))

    def finish(self, place: int, loose: Iterable[int]) -> "ChunkCursor":
        """All batches of the group there were delivered; these of its loose samples, which come after them, wait."""
        return self._done(place, (*self.waiting, *((place, nth) for nth in loose)), self.left_out)

    def pass_over(self, place: int, left_out: int = 0) -> "ChunkCursor":
        """Nothing more comes of the group there; so many parts were left out."""
        return self._done(place, self.waiting, self.left_out + left_out)

    def join(self, count: int) -> "ChunkCursor":
        """A batch of the first ones that wait was delivered."""
        return self._replace(waiting=self.waiting[count:])

    def without_waiting(self, gone: Iterable[tuple[int, int]]) -> "ChunkCursor":
        """These cannot be read any more."""
        lost = frozenset(gone)
        return self._replace(waiting=tuple(one for one in self.waiting if one not in lost))

    def _done(self, place: int, waiting: tuple[tuple[int, int], ...], left_out: int) -> "ChunkCursor":
        taken, first = {*self.taken, place}, self.place
        while first in taken:
            taken.remove(first)
            first += 1
        partly = tuple(one for one in self.partly if one[0] != place)
        return ChunkCursor(self.epoch, first, tuple(sorted(taken)), partly, waiting, left_out)
