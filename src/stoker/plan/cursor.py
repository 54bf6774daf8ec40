"""The cursor: how far the consumer has got in the plan."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from stoker.plan.numbering import Numbering
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

    def after(self, batch: Batch, plan: Plan | Numbering) -> "Cursor":
        """Where the consumer is once it has taken `batch`, too."""
        cursor = Cursor(self.epoch, self.position, set(self.taken), self.skipped)
        cursor.deliver(batch, plan)
        return cursor

    def deliver(self, batch: Batch, plan: Plan | Numbering) -> None:
        """Note that the consumer has taken `batch`."""
        if batch.epoch != self.epoch or (batch.position != self.position and not self._is_due(batch.position, plan)):
            raise ValueError(f"{batch} is not due at {self}: it was delivered before, or is of another plan or epoch")
        if batch.position != self.position:
            self.taken.add(batch.position)
            return
        self.position = plan.next_position(self.position, self.epoch)
        while self.position in self.taken:
            self.taken.remove(self.position)
            self.position = plan.next_position(self.position, self.epoch)

    def remaining(self, plan: Plan) -> Iterator[Batch]:
        """The batches of this epoch that were undelivered when this was called, in the plan's order."""
        taken = frozenset(self.taken)
        return (batch for batch in plan.batches(self.epoch, self.position) if batch.position not in taken)

    def onwards(self, plan: Plan) -> Iterator[Batch]:
        """What is left of this epoch, then epoch after epoch: the engine prefetches as far as its credit goes."""
        epoch = self.epoch
        yield from self.remaining(plan)
        while plan.batch_count(epoch + 1):
            epoch += 1
            yield from plan.batches(epoch)

    def at_end(self, plan: Plan | Numbering) -> bool:
        """Whether this epoch has nothing left to deliver to this shard."""
        return plan.has_none_at(self.position, self.epoch)

    def next_epoch(self) -> None:
        """Go to the start of the next epoch, whatever is left of this one."""
        self.epoch, self.position, self.taken, self.skipped = self.epoch + 1, 0, set(), 0

    def _is_due(self, start: int, plan: Plan | Numbering) -> bool:
        ahead = start - self.position
        if ahead < 0 or ahead % plan.stride or start in self.taken:
            return False
        return not plan.has_none_at(start, self.epoch)
