"""Runs: consecutive rounds of one epoch that a worker makes in one go."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stoker.plan.plan import Batch


class Run(NamedTuple):
    """The rounds at `round`, `round + stride`, ...: `size` of them, all of one epoch.

    It is what the engine hands out: mostly a single batch, several where batches are so quick to make that
    handing out each would cost more than making it.
    """

    epoch: int
    round: int
    stride: int
    size: int = 1

    @property
    def rounds(self) -> range:
        """Where each of its rounds begins."""
        return range(self.round, self.round + self.size * self.stride, self.stride)

    def split(self) -> list["Run"]:
        """One run for each of its rounds."""
        return [Run(self.epoch, start, self.stride) for start in self.rounds]


def runs(batches: Iterator[Batch], stride: int, size: Callable[[], int]) -> Iterator[Run]:
    """Joins batches that follow each other in one epoch into runs of up to `size()`, asked anew for each run."""
    held = next(batches, None)
    while held is not None:
        epoch, start = held.epoch, held.round
        most, count = size(), 1
        held = next(batches, None)
        while held is not None and count < most and (held.epoch, held.round) == (epoch, start + count * stride):
            count += 1
            held = next(batches, None)
        yield Run(epoch, start, stride, count)
