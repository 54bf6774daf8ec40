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

from stoker.memory import Mapping, allocate, give_back
from stoker.stores.membership import Membership
from stoker.stores.samples import Overwritten, Record, SampleReader, SampleWriter
from stoker.stores.shelf import Abandoned, Claims

_PAGE = 4096
_EMPTY, _CLAIMED, _READY = range(3)
_HAUNTED = 2**32 - 1  # as the holder of a cell: nobody's to free
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


class Carousel:
    """The rotating samples as one worker sees them.

    Args:
        file: A descriptor; it is opened anew, as locks belong to whoever has opened a file.
        places: Entries: no two samples that are needed at the same time have numbers that far apart.
        writer: Makes records of samples.
        reader: Makes samples of records.
        no_room: Called when a sample finds none.
    """

    def __init__(
        self, file: int, places: int, writer: SampleWriter, reader: SampleReader, no_room: Callable[[], None]
    ) -> None:
        self._writer, self._reader, self._no_room = writer, reader, no_room
        self._places = places
        self._fd = os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
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
        self._memory: Mapping | None = None
        self._claimed: set[int] = set()
        self._abandoned = False
        self._spare: list[int] = []  # cells for what was claimed
        self._expected = 0  # bytes of a sample, as far as one can tell
        self._put: list[tuple[int, ...]] = []  # entries of what stands in cells and is not published yet
        self._read: dict[int, int] = {}  # what this batch has read from cells: key -> serial

    def _map_tables(self) -> None:
        starts = [_PAGE]
        for item in (_ENTRY.itemsize, _CELL.itemsize, 4):
            starts.append(-(-(starts[-1] + self._places * item) // _PAGE) * _PAGE)
        if os.fstat(self._fd).st_size < starts[-1]:  # none of it, or what there was room for
            allocate(self._fd, 0, starts[-1])
        buffer = Mapping(self._fd, starts[-1]).buffer
        self._header = np.ndarray((), _HEADER, buffer)
        self._entries = np.ndarray(self._places, _ENTRY, buffer, starts[0])
        self._cells = np.ndarray(self._places, _CELL, buffer, starts[1])
        self._free = np.ndarray(self._places, "<u4", buffer, starts[2])
        if self._header["tail"] == 0:
            self._entries["key"] = -1
            self._header["tail"] = starts[-1]

    def _free_what_the_dead_hold(self) -> None:
        held = self._cells[: int(self._header["cells"])]["holder"]
        for owner in set(held.tolist()) - {0, _HAUNTED}:
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
            samples = self._reader.samples(
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
        rows = self._entries[np.asarray(keys) % self._places]
        return rows, (rows["state"] == _READY) & (rows["key"] == keys)

    @contextlib.contextmanager
    def claiming(self, keys: Sequence[int]) -> Iterator[Claims]:
        self._member.begin()
        try:
            yield self._claim(keys)
            self._publish()
        finally:
            self._return_cells()
            self._let_go()

    def put(self, key: int, sample: Any) -> None:
        if key not in self._claimed:
            return  # its place is taken by one that is still needed
        record = self._record(sample)
        self._expected = nbytes = record.nbytes
        cell = self._spare.pop() if self._spare else None
        if cell is None or self._cells["capacity"][cell] < nbytes:
            cell = self._grown(nbytes, cell)
        if cell is not None:
            offset = int(self._cells["offset"][cell])
            record.write(self._mapped(offset + nbytes).buffer, offset)
            self._put.append(
                (key, _CLAIMED, self._member.number, cell, offset, nbytes, record.number, record.aside, 0, 0)
            )

    def _record(self, sample: Any) -> Record:
        try:
            return self._writer.record(sample)
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
        until it comes to return them. It claims no more: nobody would end a wait for it."""
        if self._fd < 0:
            return
        with self._member.changing_from_another_thread():
            self._abandoned = True
            self._cells["holder"][self._cells["holder"] == self._member.number] = _HAUNTED
            self._unclaim()
        self._member.end()

    def _let_go(self) -> None:
        """Gives all claims back."""
        with self._member.changing():
            self._unclaim()
        self._member.end()

    def _unclaim(self) -> None:
        claimed, self._claimed = self._claimed, set()
        if claimed:
            keys = np.fromiter(claimed, np.int64)
            places = keys % self._places
            mine = self._is_mine(keys)
            self._entries["state"][places[mine]] = _EMPTY

    def _is_mine(self, keys: Any) -> Any:
        """Which of them this worker has claimed, still."""
        rows = self._entries[keys % self._places]
        return (rows["state"] == _CLAIMED) & (rows["owner"] == self._member.number) & (rows["key"] == keys)

    def _publish(self) -> None:
        """What was put may be read now, but for what was taken away meanwhile."""
        if not self._put:
            return
        rows = np.array(self._put, _ENTRY)
        places = rows["key"] % self._places
        with self._member.changing():
            mine = self._is_mine(rows["key"])
            self._cells["holder"][rows["cell"][mine]] = 0
            rows["serial"] = np.arange(len(rows)) + self._header["serial"]
            self._header["serial"] += len(rows)
            self._entries[places[mine]] = rows[mine]
            self._entries["state"][places[mine]] = _READY
        self._put = [row for row, is_mine in zip(self._put, mine.tolist(), strict=True) if not is_mine]
        self._claimed.difference_update(rows["key"].tolist())

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
            places = np.asarray(keys)[there] % self._places
            used = rows["used"][there] + uses[there]
            self._entries["used"][places] = used
            for place in places[used >= uses_in_all[there]].tolist():
                self._vacate(place)
        return True

    def _claim(self, keys: Sequence[int]) -> Claims:
        """Those whose place another sample needs are claimed by nobody, but made all the same."""
        wanted = np.asarray(keys, dtype=np.int64)
        places = wanted % self._places
        with self._member.changing():
            if self._abandoned:
                raise Abandoned
            rows = self._entries[places]
            claimed = (rows["state"] == _CLAIMED) & (rows["owner"] != self._member.number)
            busy = [owner for owner in set(rows["owner"][claimed].tolist()) if not self._member.is_gone(owner)]
            taken = claimed & np.isin(rows["owner"], busy)
            ready = rows["state"] == _READY
            mine = ~taken & ~(ready & (rows["key"] == wanted))
            for place in places[mine & ready].tolist():
                self._vacate(place)
            self._entries["key"][places[mine]] = wanted[mine]
            self._entries["owner"][places[mine]] = self._member.number
            self._entries["state"][places[mine]] = _CLAIMED
            self._spare = self._free_cells(int(mine.sum()))
            self._claimed.update(wanted[mine].tolist())
        others = rows["owner"][taken & (rows["key"] == wanted)]
        unplaced = taken & (rows["key"] != wanted)
        return Claims(wanted[mine | unplaced].tolist(), int(others[0]) if others.size else None)

    def _free_cells(self, count: int) -> list[int]:
        """Up to so many free cells, which are this worker's from now on."""
        free = int(self._header["free"])
        cells: list[int] = self._free[max(0, free - count) : free].tolist()
        self._header["free"] = free - len(cells)
        self._cells["holder"][cells] = self._member.number
        return cells

    def _vacate(self, place: int) -> None:
        self._entries["state"][place] = _EMPTY
        self._push(int(self._entries["cell"][place]))

    def _push(self, cell: int) -> None:
        """It is free. Whoever is killed in the middle of this loses a cell, and no more."""
        count = int(self._header["free"])
        self._cells["holder"][cell] = 0
        self._free[count] = cell
        self._header["free"] = count + 1

    def _grown(self, nbytes: int, cell: int | None) -> int | None:
        """A cell of that size: this one, which is too small, made anew; or a new one. None if there is no room."""
        capacity = -(-nbytes // _PAGE) * _PAGE
        with self._member.changing():
            if cell is None and self._header["cells"] < self._places:
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

    def _mapped(self, end: int) -> Mapping:
        """The file up to there and beyond: what is mapped past its end is there as soon as the file is."""
        memory = self._memory
        if memory is None or memory.size < end:
            size = -(-max(2 * end, _MAPPED_AHEAD) // _PAGE) * _PAGE
            memory = self._memory = Mapping(self._fd, size, populate=False)
        return memory
