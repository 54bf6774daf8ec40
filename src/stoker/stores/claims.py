"""What one worker has claimed in a table that all workers share: of each sample it says whether it is there, or who
makes it.

    EMPTY ── claim ──> CLAIMED by a worker ── publish ──> READY
      ^                   │                                 │
      └── release, or its owner is gone                     └── (rotation) evicted, when another sample needs the entry

An entry that is claimed by a worker that has died counts as empty. The table is changed only by whoever holds its mutex
(``Membership.changing``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stoker.stores.membership import Membership

EMPTY, CLAIMED, READY = range(3)  # states of an entry


class Abandoned(Exception):
    """The worker that wants to claim something was given up by now: nobody wants what it makes."""


class Claimed(NamedTuple):
    """Of the samples that were missing: those to make, and one worker who is making some of the others."""

    mine: Sequence[int]
    other: int | None


class Claims:
    """The claims of one worker.

    Args:
        member: The worker's part in the table.
        entries: The table, with columns "state" and "owner". An entry serves the keys that are equal modulo the
            table's length; if there are several, the column "key" says which of them it serves now.
    """

    def __init__(self, member: Membership, entries: Any) -> None:
        self._member, self._entries = member, entries
        self._has_keys = "key" in entries.dtype.names
        self._keys: set[int] = set()
        self._abandoned = False

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def claim(self, keys: Sequence[int], evict: Callable[[int], None] | None = None) -> Claimed:
        """Claims those of the keys that are neither there nor claimed. To be called with the mutex.

        Keys whose entry another worker has claimed for another key are claimed by nobody, but they are to be made.

        Args:
            keys: What this worker needs and did not find.
            evict: Called with each entry that is to serve another key from now on.

        Raises:
            Abandoned: This worker was given up.
        """
        if self._abandoned:
            raise Abandoned
        wanted = np.asarray(keys, dtype=np.int64)
        entry_ids = wanted % len(self._entries)
        rows = self._entries[entry_ids]
        serves, is_ready = self._serve(rows, wanted), rows["state"] == READY
        claimed = (rows["state"] == CLAIMED) & (rows["owner"] != self._member.number)
        busy = [owner for owner in set(rows["owner"][claimed].tolist()) if not self._member.is_gone(owner)]
        others = claimed & np.isin(rows["owner"], busy)
        mine = ~others & ~(is_ready & serves)
        if evict is not None:
            for entry_id in entry_ids[mine & is_ready].tolist():
                evict(entry_id)
        if self._has_keys:
            self._entries["key"][entry_ids[mine]] = wanted[mine]
        self._entries["owner"][entry_ids[mine]] = self._member.number
        self._entries["state"][entry_ids[mine]] = CLAIMED
        self._keys.update(wanted[mine].tolist())
        makers = rows["owner"][others & serves]
        return Claimed(wanted[mine | (others & ~serves)].tolist(), int(makers[0]) if makers.size else None)

    def held(self, keys: Any) -> Any:
        """Which of the keys this worker has claimed and not lost since, as a mask."""
        rows = self._entries[keys % len(self._entries)]
        is_mine = (rows["state"] == CLAIMED) & (rows["owner"] == self._member.number)
        return is_mine & self._serve(rows, keys)

    def publish(self, keys: Any, rows: Any, held: Any) -> None:
        """The samples of those keys that are ``held`` are there: writes their entries. To be called with the mutex.

        A row has the state CLAIMED and this worker as its owner, so that nobody reads one that is half written.
        """
        entry_ids = keys[held] % len(self._entries)
        self._entries[entry_ids] = rows[held]
        self._entries["state"][entry_ids] = READY
        self._keys.difference_update(keys.tolist())

    def release(self) -> bool:
        """Gives all claims back; whether there were any. To be called with the mutex."""
        claimed, self._keys = self._keys, set()
        if claimed:
            keys = np.fromiter(claimed, np.int64)
            self._entries["state"][keys[self.held(keys)] % len(self._entries)] = EMPTY
        return bool(claimed)

    def abandon(self) -> bool:
        """Gives all claims back and claims no more: nobody would end a wait for this worker. Whether there were any.

        To be called with the mutex, from another thread.
        """
        self._abandoned = True
        return self.release()

    def _serve(self, rows: Any, keys: Any) -> Any:
        return rows["key"] == keys if self._has_keys else np.ones(len(rows), bool)
