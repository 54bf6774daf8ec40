"""Groups of files, as the consumer's progress goes by them."""

from __future__ import annotations

from typing import Any

from stoker.agenda.chunks.epochs import Epochs
from stoker.agenda.chunks.state import from_state, to_state
from stoker.plan import ChunkCursor, Plan
from stoker.sources.chunks import Chunks


class ChunkGroups:
    """See ``GroupedUnits``.

    Args:
        chunks: The files.
        epochs: All there are.
    """

    def __init__(self, chunks: Chunks, epochs: Epochs) -> None:
        self._chunks, self._epochs = chunks, epochs

    def what(self, epoch: int) -> str:
        return "part" if self._epochs[epoch].parts.cuts else "file"

    def is_over(self, cursor: ChunkCursor) -> bool:
        plan = self._epochs.plan
        least = (plan.batch_size or 1) if plan.drop_last else 1  # that a last batch has
        return cursor.is_over(len(self._epochs[cursor.epoch].shares)) and len(cursor.waiting) < least

    def all_of(self, epoch: int) -> Plan:
        return Plan(len(self._epochs[epoch].parts), None)

    def state(self, cursor: ChunkCursor) -> dict[str, Any]:
        epoch = self._epochs[cursor.epoch] if cursor.is_within else None
        return to_state(cursor, self._chunks, self._epochs.plan, self._epochs.pack, epoch)

    def from_state(self, state: dict[str, Any]) -> ChunkCursor:
        epochs = self._epochs
        return from_state(state, self._chunks, epochs.plan, epochs.pack, epochs.__getitem__)
