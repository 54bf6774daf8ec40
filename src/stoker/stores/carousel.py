"""The samples that rotate: a file in memory, or without a name on disk, that all workers of a loader map.

    | header | table: one entry a sample | cells that are free | cell | cell | ...

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

from stoker.memory import Mapping, allocate, give_back
from stoker.stores.locks import Locks
from stoker.stores.samples import SampleReader, SampleWriter
from stoker.stores.shelf import Claims

_PAGE = 4096
_EMPTY, _CLAIMED, _READY = range(3)
_MUTEX, _OWNERS = 1, 16  # bytes that are locked: by who changes the table; by owners
_MAPPED_AHEAD = 2**26  # bytes at least, so that it need not be mapped again for each new cell

_HEADER = np.dtype([("tail", "<u8"), ("free", "<u8"), ("owners", "<u4")])
_CELL = np.dtype([("offset", "<u8"), ("capacity", "<u8")])
_ENTRY = np.dtype(
    [
        ("key", "<i8"),
        ("state", "<u4"),
        ("owner", "<u4"),
        ("offset", "<u8"),
        ("capacity", "<u8"),
        ("nbytes", "<u8"),
        ("form", "<u8"),
        ("aside", "<u8"),
        ("used", "<u8"),
    ]
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
            self._locks = Locks(self._fd)
            with self._locks.holding(_MUTEX):
                self._map_tables()
                self._header["owners"] += 1
                self._owner = int(self._header["owners"])
        except BaseException:
            os.close(self._fd)
            raise
        self._memory: Mapping | None = None
        self._claimed: set[int] = set()
        self._read: dict[int, int] = {}  # what this batch has read from cells: key -> offset

    def _map_tables(self) -> None:
        cells = _PAGE + self._places * _ENTRY.itemsize
        size = -(-(cells + self._places * _CELL.itemsize) // _PAGE) * _PAGE
        is_new = os.fstat(self._fd).st_size == 0
        if is_new:
            allocate(self._fd, 0, size)
        memory = Mapping(self._fd, size)
        self._header = np.ndarray((), _HEADER, memory.buffer)
        self._entries = np.ndarray(self._places, _ENTRY, memory.buffer, _PAGE)
        self._free = np.ndarray(self._places, _CELL, memory.buffer, cells)
        if self._header["tail"] == 0:
            self._header["tail"] = size
            self._entries["key"] = -1

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
        try:
            samples = self._reader.samples(buffer, starts, sizes, rows["form"].tolist(), rows["aside"].tolist())
        except Exception:
            if (self._standing(keys)[0] == rows).all():
                raise
            return {}  # a cell was another's by then, and what was read is nothing
        self._read.update(zip(keys, starts, strict=True))
        return dict(zip(keys, samples, strict=True))

    def _standing(self, keys: Sequence[int]) -> tuple[Any, Any]:
        """The entries of these keys as they are now, and which of them are theirs and ready."""
        rows = self._entries[np.asarray(keys) % self._places]
        return rows, (rows["state"] == _READY) & (rows["key"] == keys)

    @contextlib.contextmanager
    def claiming(self, keys: Sequence[int]) -> Iterator[Claims]:
        self._locks.take(_OWNERS + self._owner)
        try:
            yield self._claim(keys)
        finally:
            self.let_go()

    def put(self, key: int, sample: Any) -> None:
        if key not in self._claimed:
            return  # its place is taken by one that is still needed
        record = self._writer.record(sample)
        cell = self._cell(record.nbytes)
        if cell is None:
            return
        offset, capacity = cell
        record.write(self._mapped(offset + capacity).buffer, offset)
        with self._locks.holding(_MUTEX):
            entry = self._entry(key)
            if entry["state"] != _CLAIMED or entry["owner"] != self._owner or entry["key"] != key:
                self._push(cell)
                return
            self._entries[key % self._places] = (
                key, _CLAIMED, self._owner, offset, capacity, record.nbytes, record.number, record.aside, 0,
            )  # fmt: skip
            entry["state"] = _READY
        self._claimed.discard(key)

    def wait_for(self, other: int) -> None:
        self._locks.take(_OWNERS + other, shared=True)
        self._locks.release(_OWNERS + other)

    def let_go(self) -> None:
        """Gives all claims back. May be called from another thread, for a worker that is given up."""
        claimed, self._claimed = self._claimed, set()
        with self._locks.holding(_MUTEX):
            for key in claimed:
                entry = self._entry(key)
                if entry["state"] == _CLAIMED and entry["owner"] == self._owner and entry["key"] == key:
                    entry["state"] = _EMPTY
        self._locks.release(_OWNERS + self._owner)

    def count(self, keys: Sequence[int], uses: Any, uses_in_all: Any) -> bool:
        """A batch has used these so often. False if a cell that it read from was another's by then."""
        read, self._read = self._read, {}
        with self._locks.holding(_MUTEX):
            if read:
                rows, there = self._standing(list(read))
                if not (there.all() and (rows["offset"] == list(read.values())).all()):
                    return False
            rows, there = self._standing(keys)
            places = np.asarray(keys)[there] % self._places
            used = rows["used"][there] + uses[there]
            self._entries["used"][places] = used
            for place in places[used >= uses_in_all[there]].tolist():
                self._vacate(self._entries[place])
        return True

    def _entry(self, key: int) -> Any:
        return self._entries[key % self._places]

    def _claim(self, keys: Sequence[int]) -> Claims:
        """Those whose place another sample needs are claimed by nobody, but made all the same."""
        mine, other = [], None
        with self._locks.holding(_MUTEX):
            for key in keys:
                entry = self._entry(key)
                owner, state = int(entry["owner"]), int(entry["state"])
                is_busy = state == _CLAIMED and owner != self._owner and not self._is_gone(owner)
                if is_busy and entry["key"] == key:
                    other = owner
                elif is_busy:
                    mine.append(key)
                elif state != _READY or entry["key"] != key:
                    if state == _READY:
                        self._vacate(entry)
                    entry["key"], entry["owner"], entry["state"] = key, self._owner, _CLAIMED
                    self._claimed.add(key)
                    mine.append(key)
        return Claims(mine, other)

    def _is_gone(self, owner: int) -> bool:
        if not self._locks.try_take(_OWNERS + owner):
            return False
        self._locks.release(_OWNERS + owner)
        return True

    def _vacate(self, entry: Any) -> None:
        entry["state"] = _EMPTY
        self._push((int(entry["offset"]), int(entry["capacity"])))

    def _push(self, cell: tuple[int, int]) -> None:
        count = int(self._header["free"])
        if count < self._places:
            self._free[count] = cell
            self._header["free"] = count + 1  # last: whoever is killed in between loses a cell, and no more

    def _cell(self, nbytes: int) -> tuple[int, int] | None:
        """A cell of that size: one that is free, or a new one in the place of one that is too small."""
        with self._locks.holding(_MUTEX):
            count = int(self._header["free"])
            if count:
                fits = np.flatnonzero(self._free["capacity"][:count] >= nbytes)
                chosen = int(fits[-1]) if fits.size else count - 1
                cell = int(self._free[chosen]["offset"]), int(self._free[chosen]["capacity"])
                self._free[chosen] = self._free[count - 1]
                self._header["free"] = count - 1
                if fits.size:
                    return cell
                give_back(self._fd, *cell)
            offset, capacity = int(self._header["tail"]), -(-nbytes // _PAGE) * _PAGE
            try:
                allocate(self._fd, offset, capacity)
            except MemoryError:
                self._no_room()
                return None
            self._header["tail"] = offset + capacity
            return offset, capacity

    def _mapped(self, end: int) -> Mapping:
        """The file up to there and beyond: what is mapped past its end is there as soon as the file is."""
        memory = self._memory
        if memory is None or memory.size < end:
            size = -(-max(2 * end, _MAPPED_AHEAD) // _PAGE) * _PAGE
            memory = self._memory = Mapping(self._fd, size, populate=False)
        return memory
