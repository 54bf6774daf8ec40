"""Where the consumer is among units that have many batches each: groups of files, or windows of samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

from stoker.engine import Delivery
from stoker.plan import Batch, ChunkCursor, Plan


class GroupedUnits(Protocol):
    """What the progress must know of the units."""

    def what(self, epoch: int) -> str:
        """What is left out of them where it cannot be made."""

    def is_over(self, cursor: ChunkCursor) -> bool:
        """Whether nothing of the cursor's epoch is left."""

    def all_of(self, epoch: int) -> Plan:
        """Of what some were left out."""

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        """A cursor that is not at the end of an epoch, as JSON can hold it."""

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        """And back.

        Raises:
            StateError: The state is damaged, or of something else.
        """


class GroupedProgress:
    """By units and their batches.

    Args:
        groups: The units.
    """

    def __init__(self, groups: GroupedUnits) -> None:
        self.cursor = ChunkCursor()
        self._groups = groups

    @property
    def epoch(self) -> int:
        return self.cursor.epoch

    @property
    def what(self) -> str:
        return self._groups.what(self.epoch)

    def done(self) -> int | None:
        return 0 if self.cursor == ChunkCursor(self.epoch) else None

    def at_end(self) -> bool:
        return self._groups.is_over(self.cursor)

    def after(self, delivery: Delivery) -> Any:
        return delivery.after if delivery.unit is None else delivery.unit.after(delivery.nth)

    def leave_out(self, count: int) -> ChunkCursor:
        return self.cursor  # what was left out of a unit is counted when it has come

    def left_out(self) -> int:
        return self.cursor.left_out

    def all_of(self, batch: Batch) -> Plan:
        return self._groups.all_of(batch.epoch)

    def go_to(self, epoch: int) -> ChunkCursor:
        return ChunkCursor(epoch)

    def go_on_as(self, shard: tuple[int, int], plan: Plan, set_plan: Callable[[Plan], None]) -> None:
        """From where the consumer is, as another shard; where that cannot be, all stays as it was.

        Args:
            shard: (index, count).
            plan: Of the batches, so far.
            set_plan: Sets another.

        Raises:
            StateError: It is where only the shard that it was can go on.
        """
        state = self.state(self.cursor)
        set_plan(dataclasses.replace(plan, shard=shard))
        try:
            self.cursor = self.from_state(state)
        except BaseException:
            set_plan(plan)
            raise

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        is_at_end = cursor.place and self._groups.is_over(cursor)
        return self._groups.state(ChunkCursor(cursor.epoch + 1) if is_at_end else cursor)

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        return self._groups.from_state(state)
