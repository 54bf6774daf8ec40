"""Where the consumer is among groups of files."""

from __future__ import annotations

from typing import Any

from stoker.agenda.chunks.epochs import Epochs
from stoker.agenda.chunks.state import from_state, to_state
from stoker.engine import Delivery
from stoker.plan import Batch, ChunkCursor, Plan
from stoker.sources.chunks import Chunks


class ChunkProgress:
    """By the groups of each epoch.

    Args:
        chunks: The files.
        epochs: All there are.
    """

    def __init__(self, chunks: Chunks, epochs: Epochs) -> None:
        self.cursor = ChunkCursor()
        self._chunks, self._epochs = chunks, epochs

    @property
    def epoch(self) -> int:
        return self.cursor.epoch

    @property
    def what(self) -> str:
        return "part" if self._epochs[self.epoch].parts.cuts else "file"

    def done(self) -> int | None:
        return 0 if self.cursor == ChunkCursor(self.epoch) else None

    def at_end(self) -> bool:
        return self._is_over(self.cursor)

    def after(self, delivery: Delivery) -> Any:
        return delivery.after if delivery.unit is None else delivery.unit.after(delivery.nth)

    def leave_out(self, count: int) -> ChunkCursor:
        return self.cursor  # what was left out of a group is counted when it has come

    def left_out(self) -> int:
        return self.cursor.left_out

    def all_of(self, batch: Batch) -> Plan:
        return Plan(len(self._epochs[batch.epoch].parts), None)

    def go_to(self, epoch: int) -> ChunkCursor:
        return ChunkCursor(epoch)

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        if cursor.place and self._is_over(cursor):
            cursor = ChunkCursor(cursor.epoch + 1)
        epoch = self._epochs[cursor.epoch] if cursor.is_within else None
        return to_state(cursor, self._chunks, self._epochs.plan, self._epochs.pack, epoch)

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        epochs = self._epochs
        return from_state(state, self._chunks, epochs.plan, epochs.pack, epochs.__getitem__)

    def _is_over(self, cursor: ChunkCursor) -> bool:
        plan = self._epochs.plan
        least = (plan.batch_size or 1) if plan.drop_last else 1  # that a last batch has
        return cursor.is_over(len(self._epochs[cursor.epoch].shares)) and len(cursor.waiting) < least
