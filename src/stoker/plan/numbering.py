"""Numbering: the plan of units that nobody has counted, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from stoker.plan.fields import checked_seed
from stoker.plan.plan import Batch, batch_seed


@dataclass(frozen=True)
class Numbering:
    """Items of an iterable, or groups of files: each is a round of its own, and has one sample.

    It answers what a `Plan` does, as far as that makes sense where no length is known and nothing is shuffled.

    Args:
        seed: Any int.
    """

    seed: int = 0

    length: ClassVar[int] = 0  # which nobody knows
    positions: ClassVar[int] = 2**62  # numbers that there can be: they travel to workers as 64 bits
    batch_size: ClassVar[int | None] = None
    shard: ClassVar[tuple[int, int]] = (0, 1)
    stride: ClassVar[int] = 1
    times: ClassVar[int] = 1
    order: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))

    def of_length(self, length: int) -> "Numbering":
        """Itself: it has none."""
        return self

    def share_in(self, epoch: int) -> int | None:
        return None

    def is_over(self, position: int, epoch: int = 0) -> bool:
        return position >= self.positions

    def has_none_at(self, position: int, epoch: int = 0) -> bool:
        return position >= self.positions

    def next_position(self, position: int, epoch: int = 0) -> int:
        return position + 1

    def batch(self, epoch: int, position: int) -> Batch:
        return Batch(epoch, position, position + 1, position)

    def indices(self, batch: Batch) -> Sequence[int]:
        return range(batch.start, batch.stop)

    def batch_seed(self, batch: Batch) -> int:
        """A 64-bit seed for what is random in a unit, unless it has one of its own."""
        return batch_seed(self.seed, batch)
