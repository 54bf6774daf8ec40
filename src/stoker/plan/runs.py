"""Runs: consecutive rounds of one epoch that a worker makes in one go."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stoker.plan.plan import Batch


class Run(NamedTuple):
    """The rounds at `position`, `position + stride`, ...: `size` of them, all of one epoch.

    It is what the engine hands out: mostly a single unit (a batch, an item, a group of files), several where these are
    so quick to make that handing out each would cost more than making it.

    Attributes:
        samples: Of each of its rounds: all have as many.
        worker: The one that alone can make it; None: any.
        stays: Whoever has got it keeps it, and no other takes it over, unless that one dies.
    """

    epoch: int
    position: int
    stride: int
    size: int = 1
    samples: int = 1
    worker: int | None = None
    stays: bool = False

    @property
    def positions(self) -> range:
        """Where each of its rounds begins."""
        return range(self.position, self.position + self.size * self.stride, self.stride)

    def split(self) -> list["Run"]:
        """One run for each of its rounds."""
        return [self._replace(position=start, size=1) for start in self.positions]


def runs(batches: Iterator[Batch], stride: int, size: Callable[[], int]) -> Iterator[Run]:
    """Joins batches that follow each other in one epoch into runs of up to `size()`, asked anew for each run.

    The last batch of an epoch, if it is short, is a run of its own.
    """
    held = next(batches, None)
    while held is not None:
        epoch, first, stop, start = held
        samples, most, count = stop - first, size(), 1
        held = next(batches, None)
        while held is not None and count < most and held.position == start + count * stride and held.epoch == epoch:
            if held.stop - held.start != samples:
                break
            count += 1
            held = next(batches, None)
        yield Run(epoch, start, stride, count, samples)
