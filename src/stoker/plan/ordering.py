"""The protocol of orders of one's own: of a plan that is neither in the dataset's order nor a shuffle of it."""

from typing import Literal, Protocol, TypeGuard

from stoker.plan.order import Order
from stoker.plan.permutation import Positions

LastRound = Literal["divided", "whole", "dropped"]  # what becomes of the batches of a round that is not full


class Ordering(Protocol):
    """Which dataset index stands at which position of an epoch: a pure function of its fields and the arguments.

    It is a field of a frozen ``Plan``, which is compared, hashed and sent to workers. So it is immutable, and has
    ``__eq__`` and ``__hash__``. Large arrays are best compared by a digest that is made once; where they are plain
    attributes, they are pickled out of band.
    """

    def __hash__(self) -> int:
        """Equal orders have the same."""

    def positions(self, length: int, seed: int, epoch: int) -> int:
        """Positions in that epoch, over all shards, of a dataset with that length. It is called for each batch."""

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> Order:
        """The order of that epoch. The plan keeps it for as long as the epoch is in use."""

    def fingerprint(self, epoch: int | None) -> str:
        """A short text that only the same order has: it is written into states, and compared on resume.

        ``epoch``: The one that the consumer is in; None: it is between two epochs.
        """


class Batched(Order, Protocol):
    """The order of one epoch whose batches have sizes of their own."""

    @property
    def bounds(self) -> Positions:
        """Where each batch begins among the samples, in the order of the epoch; the last one is the end."""

    def turns(self, position: int, shards: int, last: LastRound) -> Positions:
        """Of the full round that begins with the batch at that position, the place of each shard in it."""


class BatchOrdering(Ordering, Protocol):
    """An order that cuts epochs into batches itself: its positions are whole batches.

    The plan's batch size is 1 then, so that a round takes a batch for each shard.
    """

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> Batched:
        """Its positions are samples again."""


def holds_batches(order: Ordering | None) -> TypeGuard[BatchOrdering]:
    """Whether it cuts epochs into batches itself."""
    return getattr(order, "holds_batches", False)


def deals_batches(order: Ordering | None) -> bool:
    """Whether it says which shard has which batch of a round, be they of one size or not."""
    return getattr(order, "deals_batches", False)
