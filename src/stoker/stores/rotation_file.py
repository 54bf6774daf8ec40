"""The samples that rotate: a file in memory, or without a name on disk, that all workers of a loader map.

A sample stands in a cell until it has been used as often as it shall be; then the next one takes the cell, so in the
steady state no memory is taken or given back. Nothing here is read by a later run, so nothing is checksummed.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stoker.memory import reopened
from stoker.stores.claims import CLAIMED, EMPTY, READY, Claimed, Claims
from stoker.stores.descriptor import Descriptor
from stoker.stores.membership import Membership
from stoker.stores.record_codec import Overwritten, RecordDecoder, RecordEncoder, SampleRecord
from stoker.stores.rotation_cells import ENTRY, Cells, Tables


class RotationFile:
    """The rotating samples as one worker sees them.

    Args:
        file: A descriptor; it is opened anew, as locks belong to whoever has opened a file.
        entry_count: Of the table. No two samples that are needed at the same time have numbers that far apart.
        encoder: Makes records of samples.
        decoder: Makes samples of records.
        no_room: Called when a sample finds none.
    """

    def __init__(
        self, file: int, entry_count: int, encoder: RecordEncoder, decoder: RecordDecoder, no_room: Callable[[], None]
    ) -> None:
        self._encoder, self._decoder, self._no_room = encoder, decoder, no_room
        self._entry_count = entry_count
        self._file = Descriptor(reopened(file, os.O_RDWR))
        try:
            self._member = Membership(self._file.number)
            with self._member.changing():
                tables = Tables.of(self._file.number, entry_count)
                self._header, self._entries = tables.header, tables.entries
                self._cells = Cells(self._file, tables, self._member)
                self._header["owners"] += np.uint32(1)
                self._member.number = int(self._header["owners"])
                self._cells.release_what_the_dead_hold()
        except BaseException:
            self._file.close()
            raise
        self._claims = Claims(self._member, self._entries)
        self._spare: list[int] = []  # cells for what was claimed
        self._put: list[tuple[int, ...]] = []  # entries of what stands in cells and is not published yet
        self._read: dict[int, int] = {}  # what this batch has read from cells: key -> serial

    def close(self) -> None:
        self._file.close()

    def begin(self) -> None:
        """A new batch."""
        self._read = {}

    def look(self, keys: Sequence[int]) -> dict[int, Any]:
        rows, there = self._standing(keys)
        if not there.any():
            return {}
        rows, keys = rows[there], np.asarray(keys)[there].tolist()
        starts, sizes = rows["offset"].tolist(), rows["nbytes"].tolist()
        buffer = self._cells.memory(max(map(operator.add, starts, sizes))).buffer
        forms, asides = rows["form"].tolist(), rows["aside"].tolist()
        try:
            samples = self._decoder.samples(
                buffer, starts, sizes, forms, asides, lambda: self._are(keys, rows["serial"])
            )
        except Overwritten:
            return {}
        self._read.update(zip(keys, rows["serial"].tolist(), strict=True))
        return dict(zip(keys, samples, strict=True))

    def _are(self, keys: Sequence[int], serials: Any) -> bool:
        """Whether they stand where they were put under these numbers, and have stood there ever since."""
        rows, there = self._standing(keys)
        return bool(there.all() and (rows["serial"] == serials).all())

    def _standing(self, keys: Sequence[int]) -> tuple[Any, Any]:
        """The entries of these keys as they are now, and which of them are theirs and ready."""
        rows = self._entries[np.asarray(keys) % self._entry_count]
        return rows, (rows["state"] == READY) & (rows["key"] == keys)

    @contextlib.contextmanager
    def claiming(self, keys: Sequence[int]) -> Iterator[Claimed]:
        self._member.begin()
        try:
            yield self._claim(keys)
            self._publish()
        finally:
            self._return_cells()
            self._let_go()

    def put(self, key: int, sample: Any) -> None:
        if key not in self._claims:
            return  # its entry is taken by one that is still needed
        record = self._record(sample)
        nbytes = record.nbytes
        cell = self._spare.pop() if self._spare else None
        if cell is None or not self._cells.has_room(cell, nbytes):
            cell = self._grown(nbytes, cell)
        if cell is not None:
            offset = self._cells.offset(cell)
            record.write(self._cells.memory(offset + nbytes).buffer, offset)
            self._put.append(
                (key, CLAIMED, self._member.number, cell, offset, nbytes, record.number, record.aside, 0, 0)
            )

    def _record(self, sample: Any) -> SampleRecord:
        try:
            return self._encoder.record(sample)
        except Exception as error:
            error.add_note(
                "stoker: samples that rotate are kept as arrays, numbers and strings, and what is none of these is "
                "pickled: give what can be, or leave the rotation out"
            )
            raise

    def wait_for(self, other: int) -> None:
        self._member.wait_for(other)

    def abandon(self) -> None:
        """From another thread, for a worker that is given up: it may still write into its cells, so they stay its own
        until it comes to return them."""
        if not self._file.is_open:
            return
        with self._member.changing_from_another_thread():
            self._cells.abandon()
            self._claims.abandon()
        self._member.end()

    def _let_go(self) -> None:
        """Gives all claims back."""
        with self._member.changing():
            self._claims.release()
        self._member.end()

    def _publish(self) -> None:
        """What was put may be read now, but for what was taken away meanwhile."""
        if not self._put:
            return
        rows = np.array(self._put, ENTRY)
        with self._member.changing():
            held = self._claims.held(rows["key"])
            self._cells.hand_over(rows["cell"][held])
            rows["serial"] = np.arange(len(rows), dtype=np.uint64) + self._header["serial"]
            self._header["serial"] += np.uint64(len(rows))
            self._claims.publish(rows["key"], rows, held)
        self._put = [row for row, is_held in zip(self._put, held.tolist(), strict=True) if not is_held]

    def _return_cells(self) -> None:
        """Those that nothing was put into, or nothing that counts."""
        cells = [*self._spare, *[row[3] for row in self._put]]
        self._spare, self._put = [], []
        if cells:
            with self._member.changing():
                for cell in cells:
                    self._cells.release(cell)

    def count(self, keys: Sequence[int], uses: Any, uses_in_all: Any) -> bool:
        """A batch has used these so often. False if a cell that it read from was another's by then."""
        read, self._read = self._read, {}
        with self._member.changing():
            if read and not self._are(list(read), list(read.values())):
                return False
            rows, there = self._standing(keys)
            entry_ids = np.asarray(keys)[there] % self._entry_count
            used = rows["used"][there] + uses[there]
            self._entries["used"][entry_ids] = used
            for entry_id in entry_ids[used >= uses_in_all[there]].tolist():
                self._vacate(entry_id)
        return True

    def _claim(self, keys: Sequence[int]) -> Claimed:
        with self._member.changing():
            claimed = self._claims.claim(keys, evict=self._vacate)
            self._spare = self._cells.take(len(self._claims))
        return claimed

    def _vacate(self, entry_id: int) -> None:
        self._entries["state"][entry_id] = EMPTY
        self._cells.release(int(self._entries["cell"][entry_id]))

    def _grown(self, nbytes: int, cell: int | None) -> int | None:
        """A cell of that size, if there is room."""
        with self._member.changing():
            grown = self._cells.grown(nbytes, cell)
            if grown is None:
                self._no_room()
        return grown
