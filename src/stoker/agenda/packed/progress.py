"""Where the consumer is among the batches of packed windows."""

from __future__ import annotations

from typing import Any

from stoker.agenda.packed.state import from_state, to_state
from stoker.agenda.packed.windows import Windows
from stoker.engine import Delivery
from stoker.plan import Batch, ChunkCursor, Plan


class PackedProgress:
    """By windows."""

    what = "sample"

    def __init__(self, windows: Windows) -> None:
        self.cursor = ChunkCursor()
        self._windows = windows

    @property
    def epoch(self) -> int:
        return self.cursor.epoch

    def done(self) -> int | None:
        return 0 if self.cursor == ChunkCursor(self.epoch) else None

    def at_end(self) -> bool:
        return self._is_over(self.cursor)

    def after(self, delivery: Delivery) -> Any:
        return delivery.after if delivery.unit is None else delivery.unit.after(delivery.nth)

    def leave_out(self, count: int) -> ChunkCursor:
        return self.cursor  # what was left out of a window is counted when it has come

    def left_out(self) -> int:
        return self.cursor.left_out

    def all_of(self, batch: Batch) -> Plan:
        return self._windows.plan

    def go_to(self, epoch: int) -> ChunkCursor:
        return ChunkCursor(epoch)

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        if cursor.place and self._is_over(cursor):
            cursor = ChunkCursor(cursor.epoch + 1)
        return to_state(cursor, self._windows)

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        cursor, batches = from_state(state, self._windows)
        if batches != self._windows.batches:
            self._windows.set_batches(batches)
        return cursor

    def _is_over(self, cursor: ChunkCursor) -> bool:
        batches = self._windows.batches
        least = (batches.batch_size or 1) if batches.drop_last else 1  # that a last batch has
        return cursor.is_over(self._windows.count(cursor.epoch)) and len(cursor.waiting) < least
