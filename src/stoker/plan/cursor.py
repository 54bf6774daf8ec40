"""The cursor: how far the consumer has got in the plan."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from stoker.plan.plan import Batch, Plan


@dataclass(slots=True)
class Cursor:
    """What has been delivered, which is the whole checkpoint.

    Attributes:
        epoch: The epoch being delivered.
        position: The global position before which every round was delivered.
        taken: Rounds after `position` that were delivered already, out of order.
        skipped: Samples of this epoch that failed and were left out.
    """

    epoch: int = 0
    position: int = 0
    taken: set[int] = field(default_factory=set)
    skipped: int = 0

    def deliver(self, batch: Batch, plan: Plan) -> None:
        """Note that the consumer has taken `batch`."""
        if batch.epoch != self.epoch or (batch.round != self.position and not self._is_due(batch.round, plan)):
            raise ValueError(f"{batch} is not due at {self}: it was delivered before, or is of another plan or epoch")
        if batch.round != self.position:
            self.taken.add(batch.round)
            return
        self.position = plan.next_position(self.position)
        while self.position in self.taken:
            self.taken.remove(self.position)
            self.position = plan.next_position(self.position)

    def remaining(self, plan: Plan) -> Iterator[Batch]:
        """The batches of this epoch that were undelivered when this was called, in the plan's order."""
        taken = frozenset(self.taken)
        return (batch for batch in plan.batches(self.epoch, self.position) if batch.round not in taken)

    def onwards(self, plan: Plan) -> Iterator[Batch]:
        """What is left of this epoch, then epoch after epoch: the engine prefetches as far as its credit goes."""
        epoch = self.epoch
        yield from self.remaining(plan)
        while plan.rounds:
            epoch += 1
            yield from plan.batches(epoch)

    def at_end(self, plan: Plan) -> bool:
        """Whether this epoch has nothing left to deliver."""
        return plan.is_over(self.position)

    def next_epoch(self) -> None:
        """Go to the start of the next epoch, whatever is left of this one."""
        self.epoch, self.position, self.taken, self.skipped = self.epoch + 1, 0, set(), 0

    def _is_due(self, start: int, plan: Plan) -> bool:
        ahead = start - self.position
        return ahead >= 0 and ahead % plan.stride == 0 and start not in self.taken and not plan.is_over(start)
