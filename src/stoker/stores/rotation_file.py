"""The samples that rotate: a file in memory, or without a name on disk, that all workers of a loader map.

    | header | table: one entry a sample | table: one row a cell | free cells | cell | cell | ...

A sample stands in a cell until it has been used as often as it shall be; then the next one takes the cell, so in the
steady state no memory is taken or given back. A cell that is neither free nor read from is held by one worker; if that
one dies, the next one to start frees it. Nothing here is read by a later run, so nothing is checksummed.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stoker.memory import MappedFile, allocate, give_back, reopened
from stoker.memory.array_layout import aligned
from stoker.stores.claims import CLAIMED, EMPTY, READY, Claimed, Claims
from stoker.stores.membership import Membership
from stoker.stores.record_codec import Overwritten, RecordDecoder, RecordEncoder, SampleRecord

_PAGE = 4096
_NOBODY = 2**32 - 1  # as the holder of a cell: it is not to be freed, as a thread may still write there
_MAPPED_AHEAD = 2**26  # bytes at least, so that it need not be mapped again for each new cell

_HEADER = np.dtype(
    [("tail", "<u8"), ("cells", "<u8"), ("free", "<u8"), ("owners", "<u4"), ("serial", "<u8")], align=True
)
_CELL = np.dtype([("offset", "<u8"), ("capacity", "<u8"), ("holder", "<u4")], align=True)
_ENTRY = np.dtype(
    [
        ("key", "<i8"),
        ("state", "<u4"),
        ("owner", "<u4"),
        ("cell", "<u4"),
        ("offset", "<u8"),
        ("nbytes", "<u8"),
        ("form", "<u8"),
        ("aside", "<u8"),
        ("used", "<u8"),
        ("serial", "<u8"),  # no two samples are ever put under the same one
    ],
    align=True,  # so that no number is written in two steps
)


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
        self._fd = reopened(file, os.O_RDWR)
        try:
            self._member = Membership(self._fd)
            with self._member.changing():
                self._map_tables()
                self._header["owners"] += 1
                self._member.number = int(self._header["owners"])
                self._free_what_the_dead_hold()
        except BaseException:
            os.close(self._fd)
            raise
        self._memory: MappedFile | None = None
        self._claims = Claims(self._member, self._entries)
        self._spare: list[int] = []  # cells for what was claimed
        self._put: list[tuple[int, ...]] = []  # entries of what stands in cells and is not published yet
        self._read: dict[int, int] = {}  # what this batch has read from cells: key -> serial

    def _map_tables(self) -> None:
        starts = [_PAGE]
        for item in (_ENTRY.itemsize, _CELL.itemsize, 4):
            starts.append(aligned(starts[-1] + self._entry_count * item, _PAGE))
        if os.fstat(self._fd).st_size < starts[-1]:  # none of it, or what there was room for
            allocate(self._fd, 0, starts[-1])
        buffer = MappedFile(self._fd, starts[-1]).buffer
        self._header = np.ndarray((), _HEADER, buffer)
        self._entries = np.ndarray(self._entry_count, _ENTRY, buffer, starts[0])
        self._cells = np.ndarray(self._entry_count, _CELL, buffer, starts[1])
        self._free = np.ndarray(self._entry_count, "<u4", buffer, starts[2])
        if self._header["tail"] == 0:
            self._entries["key"] = -1
            self._header["tail"] = starts[-1]

    def _free_what_the_dead_hold(self) -> None:
        held = self._cells[: int(self._header["cells"])]["holder"]
        for owner in set(held.tolist()) - {0, _NOBODY}:
            if self._member.is_gone(owner):
                for cell in np.flatnonzero(held == owner).tolist():
                    self._push(cell)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def begin(self) -> None:
        """A new batch."""
        self._read = {}

    def look(self, keys: Sequence[int]) -> dict[int, Any]:
        rows, there = self._standing(keys)
        if not there.any():
            return {}
        rows, keys = rows[there], np.asarray(keys)[there].tolist()
        starts, sizes = rows["offset"].tolist(), rows["nbytes"].tolist()
        buffer = self._mapped(max(map(operator.add, starts, sizes))).buffer
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
        if cell is None or self._cells["capacity"][cell] < nbytes:
            cell = self._grown(nbytes, cell)
        if cell is not None:
            offset = int(self._cells["offset"][cell])
            record.write(self._mapped(offset + nbytes).buffer, offset)
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
        if self._fd < 0:
            return
        with self._member.changing_from_another_thread():
            self._cells["holder"][self._cells["holder"] == self._member.number] = _NOBODY
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
        rows = np.array(self._put, _ENTRY)
        with self._member.changing():
            held = self._claims.held(rows["key"])
            self._cells["holder"][rows["cell"][held]] = 0
            rows["serial"] = np.arange(len(rows)) + self._header["serial"]
            self._header["serial"] += len(rows)
            self._claims.publish(rows["key"], rows, held)
        self._put = [row for row, is_held in zip(self._put, held.tolist(), strict=True) if not is_held]

    def _return_cells(self) -> None:
        """Those that nothing was put into, or nothing that counts."""
        cells = [*self._spare, *[row[3] for row in self._put]]
        self._spare, self._put = [], []
        if cells:
            with self._member.changing():
                for cell in cells:
                    self._push(cell)

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
            self._spare = self._free_cells(len(self._claims))
        return claimed

    def _free_cells(self, count: int) -> list[int]:
        """Up to so many free cells, which are this worker's from now on."""
        free = int(self._header["free"])
        cells: list[int] = self._free[max(0, free - count) : free].tolist()
        self._header["free"] = free - len(cells)
        self._cells["holder"][cells] = self._member.number
        return cells

    def _vacate(self, entry_id: int) -> None:
        self._entries["state"][entry_id] = EMPTY
        self._push(int(self._entries["cell"][entry_id]))

    def _push(self, cell: int) -> None:
        """It is free. Whoever is killed in the middle of this loses a cell, and no more."""
        count = int(self._header["free"])
        self._cells["holder"][cell] = 0
        self._free[count] = cell
        self._header["free"] = count + 1

    def _grown(self, nbytes: int, cell: int | None) -> int | None:
        """A cell of that size: this one, which is too small, made anew; or a new one. None if there is no room."""
        capacity = aligned(nbytes, _PAGE)
        with self._member.changing():
            if cell is None and self._header["cells"] < self._entry_count:
                cell = int(self._header["cells"])
                self._cells[cell] = 0, 0, self._member.number
                self._header["cells"] += 1
            if cell is None or not self._move(cell, capacity):
                self._no_room()
                return None
        return cell

    def _move(self, cell: int, capacity: int) -> bool:
        """Gives the cell so much new memory instead of what it had.

        The order of steps is such that whoever is killed between two of them loses memory, but neither leaves a cell
        whose memory was given back nor two cells with the same.
        """
        old, offset = int(self._cells["capacity"][cell]), int(self._header["tail"])
        self._cells["capacity"][cell] = 0
        give_back(self._fd, int(self._cells["offset"][cell]), old)
        try:
            allocate(self._fd, offset, capacity)
        except MemoryError:
            self._push(cell)
            return False
        self._header["tail"] = offset + capacity
        self._cells["offset"][cell] = offset
        self._cells["capacity"][cell] = capacity
        return True

    def _mapped(self, end: int) -> MappedFile:
        """The file up to there and beyond: what is mapped past its end is there as soon as the file is."""
        memory = self._memory
        if memory is None or memory.size < end:
            size = aligned(max(2 * end, _MAPPED_AHEAD), _PAGE)
            memory = self._memory = MappedFile(self._fd, size, populate=False)
        return memory
