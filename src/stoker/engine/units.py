"""What the engine asks of an agenda: what there is to do, unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from stoker.plan import Batch, Run


class Units(Protocol):
    """Units of work, each of which has a key: its epoch and its position there.

    Called by whoever drives the engine: the consumer's thread, or, where batches are moved ahead, the conveyor's.
    """

    interrupt: BaseException | None  # that came while the next unit was waited for: taken and raised by the driver

    @property
    def length(self) -> int:
        """Of the dataset that workers have; 0 where there is none."""

    @property
    def longest_run(self) -> int:
        """Units that may be made in one go."""

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        """What is still to be done, in order, in runs of up to ``size()`` units, which is asked anew for each.

        None in between: the next one may be slow to come, so look first at what has happened meanwhile. It is asked
        for no further ahead than there is credit, so it may have no end, and run code of the user's.
        """

    def payload(self, run: Run) -> Any:
        """What a worker gets to work on, beside the key. As often as it is sent to one, until it was taken."""

    def batch(self, epoch: int, position: int) -> Batch:
        """The unit with that key."""

    def indices(self, run: Run) -> Sequence[int]:
        """What the user knows the samples of a run of one unit by."""

    def name(self, run: Run) -> str:
        """What a run of one unit is called in messages."""
