"""The cells of a rotation, in which its samples stand, and how its file is laid out.

    | header | table: one entry a sample | table: one row a cell | free cells | cell | cell | ...

A cell that is neither free nor read from is held by one worker; if that one dies, the next one to start frees it.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from stoker.memory import MappedFile, allocate, give_back
from stoker.memory.array_layout import aligned
from stoker.stores.descriptor import Descriptor
from stoker.stores.membership import Membership

_PAGE = 4096
_NOBODY = 2**32 - 1  # as the holder of a cell: it is not to be freed, as a thread may still write there
_MAPPED_AHEAD = 2**26  # bytes at least, so that it need not be mapped again for each new cell

_HEADER = np.dtype(
    [("tail", "<u8"), ("cells", "<u8"), ("free", "<u8"), ("owners", "<u4"), ("serial", "<u8")], align=True
)
_CELL = np.dtype([("offset", "<u8"), ("capacity", "<u8"), ("holder", "<u4")], align=True)
ENTRY = np.dtype(
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


class Tables(NamedTuple):
    """What comes before the cells, as all who map the file see it."""

    header: Any
    entries: Any
    cells: Any
    free: Any  # numbers of cells

    @staticmethod
    def of(fd: int, entry_count: int) -> Tables:
        """They are made if they are not there. To be called with the mutex."""
        starts = [_PAGE]
        for item in (ENTRY.itemsize, _CELL.itemsize, 4):
            starts.append(aligned(starts[-1] + entry_count * item, _PAGE))
        if os.fstat(fd).st_size < starts[-1]:  # none of it, or what there was room for
            allocate(fd, 0, starts[-1])
        buffer = MappedFile(fd, starts[-1]).buffer
        header = np.ndarray((), _HEADER, buffer)
        entries = np.ndarray(entry_count, ENTRY, buffer, starts[0])
        cells = np.ndarray(entry_count, _CELL, buffer, starts[1])
        free = np.ndarray(entry_count, "<u4", buffer, starts[2])
        if header["tail"] == 0:
            entries["key"] = -1
            header["tail"] = starts[-1]
        return Tables(header, entries, cells, free)


class Cells:
    """The cells as one worker sees them. What changes one is to be called with the mutex.

    Args:
        file: That all workers map.
        tables: Of that file.
        member: This worker's part in it.
    """

    def __init__(self, file: Descriptor, tables: Tables, member: Membership) -> None:
        self._file, self._member = file, member
        self._header, self._cells, self._free = tables.header, tables.cells, tables.free
        self._memory: MappedFile | None = None

    def has_room(self, cell: int, nbytes: int) -> bool:
        return bool(self._cells["capacity"][cell] >= nbytes)

    def offset(self, cell: int) -> int:
        """In the file."""
        return int(self._cells["offset"][cell])

    def memory(self, end: int) -> MappedFile:
        """The file up to there and beyond: what is mapped past its end is there as soon as the file is."""
        memory = self._memory
        if memory is None or memory.size < end:
            size = aligned(max(2 * end, _MAPPED_AHEAD), _PAGE)
            memory = self._memory = MappedFile(self._file.number, size, populate=False)
        return memory

    def take(self, count: int) -> list[int]:
        """Up to so many free cells, which are this worker's from now on."""
        free = int(self._header["free"])
        cells: list[int] = self._free[max(0, free - count) : free].tolist()
        self._header["free"] = free - len(cells)
        self._cells["holder"][cells] = self._member.number
        return cells

    def release(self, cell: int) -> None:
        """It is free. Whoever is killed in the middle of this loses a cell, and no more."""
        count = int(self._header["free"])
        self._cells["holder"][cell] = 0
        self._free[count] = cell
        self._header["free"] = count + 1

    def hand_over(self, cells: Any) -> None:
        """They are held by no worker from now on, but by what stands in them."""
        self._cells["holder"][cells] = 0

    def abandon(self) -> None:
        """What this worker holds stays as it is until the worker itself returns it."""
        self._cells["holder"][self._cells["holder"] == self._member.number] = _NOBODY

    def release_what_the_dead_hold(self) -> None:
        held = self._cells[: int(self._header["cells"])]["holder"]
        for owner in set(held.tolist()) - {0, _NOBODY}:
            if self._member.is_gone(owner):
                for cell in np.flatnonzero(held == owner).tolist():
                    self.release(cell)

    def grown(self, nbytes: int, cell: int | None) -> int | None:
        """A cell of that size: this one, which is too small, made anew; or a new one. None if there is no room."""
        capacity = aligned(nbytes, _PAGE)
        if cell is None and self._header["cells"] < len(self._cells):
            cell = int(self._header["cells"])
            self._cells[cell] = 0, 0, self._member.number
            self._header["cells"] += np.uint64(1)
        return cell if cell is not None and self._move(cell, capacity) else None

    def _move(self, cell: int, capacity: int) -> bool:
        """Gives the cell so much new memory instead of what it had.

        The order of steps is such that whoever is killed between two of them loses memory, but neither leaves a cell
        whose memory was given back nor two cells with the same.
        """
        old, offset = int(self._cells["capacity"][cell]), int(self._header["tail"])
        self._cells["capacity"][cell] = 0
        give_back(self._file.number, int(self._cells["offset"][cell]), old)
        try:
            allocate(self._file.number, offset, capacity)
        except MemoryError:
            self.release(cell)
            return False
        self._header["tail"] = offset + capacity
        self._cells["offset"][cell] = offset
        self._cells["capacity"][cell] = capacity
        return True
