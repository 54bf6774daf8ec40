"""Windows of samples, as the consumer's progress goes by them."""

from __future__ import annotations

from typing import Any

from stoker.agenda.packed.state import from_state, to_state
from stoker.agenda.packed.windows import Windows
from stoker.plan import ChunkCursor, Plan


class PackedGroups:
    """See ``GroupedUnits``.

    Args:
        windows: All there are.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def what(self, epoch: int) -> str:
        return "sample"

    def is_over(self, cursor: ChunkCursor) -> bool:
        batches = self._windows.batches
        least = (batches.batch_size or 1) if batches.drop_last else 1  # that a last batch has
        return cursor.is_over(self._windows.count(cursor.epoch)) and len(cursor.waiting) < least

    def all_of(self, epoch: int) -> Plan:
        return self._windows.plan

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        return to_state(cursor, self._windows)

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        cursor, batches = from_state(state, self._windows)
        if batches != self._windows.batches:
            self._windows.set_batches(batches)
        return cursor
