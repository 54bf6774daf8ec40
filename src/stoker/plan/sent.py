"""Batches whose indices workers cannot work out, and are told."""

from collections.abc import Sequence
from dataclasses import dataclass

from stoker.plan.permutation import Positions
from stoker.plan.plan import Batch, batch_seed


@dataclass(frozen=True)
class SentBatches:
    """The batches of a run with their indices. It answers what a `Plan` does, as far as a worker asks.

    Args:
        seed: The plan's.
        samples: The indices of each batch.
    """

    seed: int
    samples: dict[Batch, Positions]

    def batch(self, epoch: int, position: int) -> Batch:
        return next(batch for batch in self.samples if batch.position == position)

    def indices(self, batch: Batch) -> Sequence[int]:
        found: list[int] = self.samples[batch].tolist()
        return found

    def batch_seed(self, batch: Batch) -> int:
        return batch_seed(self.seed, batch)
